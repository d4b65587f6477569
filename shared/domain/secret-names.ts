/**
 * What a secret may be called. Its name becomes an environment variable of an agent's programs, so names that change how programs are found, loaded or
 * trusted are refused. Pure; browser, server and gateway ask the same.
 */
const DANGEROUS = new Set([
  ...[
    'PATH',
    'HOME',
    'SHELL',
    'IFS',
    'ENV',
    'BASH_ENV',
    'CDPATH',
    'PS4',
    'PROMPT_COMMAND',
    'USER',
    'LOGNAME',
    'PWD',
    'OLDPWD',
  ],
  ...[
    'TMPDIR',
    'TMP',
    'TEMP',
    'TERM',
    'HOSTALIASES',
    'LOCALDOMAIN',
    'RES_OPTIONS',
    'GCONV_PATH',
    'LOCPATH',
    'NLSPATH',
    'MALLOC_TRACE',
  ],
  ...['EDITOR', 'VISUAL', 'PAGER', 'BROWSER', 'SSH_ASKPASS', 'SUDO_ASKPASS', 'MANPAGER', 'LESSOPEN', 'LESSCLOSE'],
  ...[
    'PERL5OPT',
    'PERL5LIB',
    'PERLLIB',
    'PERL5DB',
    'RUBYOPT',
    'RUBYLIB',
    'CLASSPATH',
    'JAVA_TOOL_OPTIONS',
    '_JAVA_OPTIONS',
    'JDK_JAVA_OPTIONS',
  ],
  ...[
    'HTTP_PROXY',
    'HTTPS_PROXY',
    'ALL_PROXY',
    'NO_PROXY',
    'SSL_CERT_FILE',
    'SSL_CERT_DIR',
    'CURL_CA_BUNDLE',
    'REQUESTS_CA_BUNDLE',
  ],
])
const DANGEROUS_BEGINNINGS = [
  'LD_',
  'DYLD_',
  'NODE_',
  'NPM_CONFIG_',
  'GIT_',
  'PYTHON',
  'BASH_FUNC_',
  'HQ_',
  'OPENSSL_',
  'GLIBC_',
]

export const MAX_NAME = 120

/** Why a secret may not have this name, in a sentence; undefined: it may. */
export function secretNameProblem(key: string): string | undefined {
  if (key === '') return 'Please give the variable a name, such as GITHUB_TOKEN.'
  if (key.length > MAX_NAME) return `A name has at most ${MAX_NAME} characters.`
  if (!/^[A-Z][A-Z0-9_]*$/.test(key))
    return 'A name is made of capital letters, digits and underscores, and begins with a letter, such as GITHUB_TOKEN.'
  if (DANGEROUS.has(key) || DANGEROUS_BEGINNINGS.some((beginning) => key.startsWith(beginning)))
    return `${key} changes how programs on the gateway run, so no secret can have that name. Choose another, such as MY_${key.replace(/^_+/, '')}.`
  return undefined
}
