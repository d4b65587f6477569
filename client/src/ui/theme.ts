import { useSyncExternalStore } from 'react'

/**
 * The theme: a person's choice (`system`, `light`, `dark`) kept in localStorage, resolved to `data-theme` on `<html>`.
 * `THEME_SCRIPT` does this before the first paint (inline in the shell), so nothing flashes; it also follows the
 * system and other tabs. Everything else here only reads or writes the choice.
 */
export type ThemeChoice = 'system' | 'light' | 'dark'
export type Theme = 'light' | 'dark'

const KEY = 'hq.theme'
const EVENT = 'hq:theme'

export const THEME_SCRIPT = `(function(){var d=document.documentElement,m=matchMedia('(prefers-color-scheme: dark)');
function a(){var c=null;try{c=localStorage.getItem('${KEY}')}catch(e){/* storage blocked: follow the system */}
var t=c==='light'||c==='dark'?c:m.matches?'dark':'light';d.dataset.theme=t;
var e=document.querySelector('meta[name=theme-color]');if(e)e.content=t==='dark'?'#0f0f13':'#f7f7f9'}
a();m.addEventListener('change',a);addEventListener('storage',a);addEventListener('${EVENT}',a)})()`

function readChoice(): ThemeChoice {
  try {
    const value = localStorage.getItem(KEY)
    return value === 'light' || value === 'dark' ? value : 'system'
  } catch {
    return 'system' // storage blocked: follow the system
  }
}

export function setThemeChoice(choice: ThemeChoice): void {
  try {
    if (choice === 'system') localStorage.removeItem(KEY)
    else localStorage.setItem(KEY, choice)
  } catch {
    // storage blocked: the choice cannot be kept, the system's stays in force
  }
  window.dispatchEvent(new Event(EVENT))
}

function subscribe(onChange: () => void): () => void {
  window.addEventListener(EVENT, onChange)
  window.addEventListener('storage', onChange)
  return () => {
    window.removeEventListener(EVENT, onChange)
    window.removeEventListener('storage', onChange)
  }
}

/** The person's choice, live. In Node (prerender) it is `system`. */
export function useThemeChoice(): ThemeChoice {
  return useSyncExternalStore(subscribe, readChoice, () => 'system')
}
