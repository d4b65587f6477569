/** The words of the demo: a small coffee roastery, its people and customers, and the four agents that help it. All of it invented. */

export const WORKSPACE = 'Northlight Coffee'

export const AGENTS = [
  {
    slug: 'juno',
    name: 'Juno',
    template: 'chief-of-staff',
    emoji: '🧭',
    role: 'Keeps the week on course: priorities, follow-ups, who waits for whom.',
  },
  {
    slug: 'rhea',
    name: 'Rhea',
    template: 'researcher',
    emoji: '🔎',
    role: 'Finds and checks facts about suppliers, cafés and prices.',
  },
  {
    slug: 'wim',
    name: 'Wim',
    template: 'writer',
    emoji: '✍️',
    role: 'Writes newsletters, product texts and replies in our voice.',
  },
  {
    slug: 'otto',
    name: 'Otto',
    template: 'analyst',
    emoji: '📈',
    role: 'Reads the numbers: sales, stock, margins, and says what they mean.',
  },
] as const

export const STREAMS = [
  { name: 'Wholesale', color: '#3b82f6', icon: 'store' },
  { name: 'Roastery', color: '#f59e0b', icon: 'flame' },
  { name: 'Online shop', color: '#10b981', icon: 'shopping-cart' },
  { name: 'Marketing', color: '#ec4899', icon: 'megaphone' },
  { name: 'Finance', color: '#8b5cf6', icon: 'landmark' },
] as const

export const CAFES = [
  'Harbour Street Café',
  'Little Owl',
  'Café Meridian',
  'The Reading Room',
  'Bakery Lindholm',
  'Café Tilde',
  'Second Breakfast',
  'Glasshouse',
  'Tram Stop 9',
  'Hotel Aurora',
  'Kiosk am Park',
  'Fjord & Flour',
  'The Quiet Table',
  'Mill Bridge Deli',
  'Café Sorrel',
  'Corner Press',
  'Studio Nord',
  'Old Customs House',
  'Bread & Salt',
  'Café Zenith',
  'Paper Lantern',
  'The Cooperative',
  'Linden Court Hotel',
  'Bike Yard',
] as const

export const ORIGINS = [
  'Sidama',
  'Huila',
  'Kirinyaga',
  'Antigua',
  'Cajamarca',
  'Nyamasheke',
  'Marcala',
  'Gayo',
] as const
export const BLENDS = ['Morning Line', 'Northlight House', 'Slow Sunday', 'Dark Quay', 'Decaf Tilde'] as const

/** Tasks: `{cafe}`, `{origin}`, `{blend}`, `{month}` are filled in turn. `by`: the agent that usually does it, if one does. */
export const TASKS: readonly {
  stream: number
  by?: string
  title: string
  description?: string
  each: 'cafe' | 'origin' | 'blend' | 'month' | 'once'
}[] = [
  {
    stream: 0,
    by: 'rhea',
    each: 'cafe',
    title: 'Find out who buys coffee at {cafe}',
    description: 'Name, role and how they like to be written to. Say where each fact comes from.',
  },
  {
    stream: 0,
    each: 'cafe',
    title: 'Send a tasting box to {cafe}',
    description: 'House blend, one single origin, the decaf. Put the grind card in.',
  },
  {
    stream: 0,
    by: 'wim',
    each: 'cafe',
    title: 'Draft the offer for {cafe}',
    description: 'One page. Prices from the current list, delivery on Tuesdays, and why our decaf is worth a try.',
  },
  { stream: 0, by: 'juno', each: 'cafe', title: 'Follow up with {cafe} after the tasting' },
  { stream: 0, each: 'cafe', title: 'Set the grinder and train the morning shift at {cafe}' },
  {
    stream: 1,
    each: 'origin',
    title: 'Cup the new {origin} lot',
    description: 'Three roasts, blind. Scores into the cupping sheet.',
  },
  {
    stream: 1,
    by: 'otto',
    each: 'origin',
    title: 'Work out how long our {origin} stock lasts',
    description: 'At the average of the last eight weeks, with and without the two hotels.',
  },
  { stream: 1, each: 'blend', title: 'Re-profile {blend} for the winter crop' },
  {
    stream: 2,
    by: 'wim',
    each: 'origin',
    title: 'Write the shop page for {origin}',
    description: 'Story of the washing station in 120 words, then taste, then brewing advice. No superlatives.',
  },
  { stream: 2, by: 'wim', each: 'blend', title: 'Shorten the product text of {blend}' },
  { stream: 2, each: 'blend', title: 'New photos of the {blend} bag' },
  {
    stream: 3,
    by: 'wim',
    each: 'month',
    title: 'Newsletter for {month}',
    description: 'One story, one offer, one date. Under 300 words.',
  },
  { stream: 3, by: 'rhea', each: 'month', title: 'Collect local food events in {month}' },
  {
    stream: 4,
    by: 'otto',
    each: 'month',
    title: 'Margin by customer, {month}',
    description:
      'Table of all wholesale customers: revenue, margin, change. Three sentences on top: what stands out and why.',
  },
  { stream: 4, each: 'month', title: 'Close the books for {month}' },
  { stream: 4, by: 'juno', each: 'month', title: 'Remind late payers, {month}' },
  {
    stream: 1,
    each: 'once',
    title: 'Get the afterburner serviced',
    description: 'The engineer needs half a day without roasting.',
  },
  { stream: 1, each: 'once', title: 'Replace the scale at the packing table' },
  { stream: 2, by: 'otto', each: 'once', title: 'Why did fewer people finish checkout in the last two weeks?' },
  { stream: 2, each: 'once', title: 'Offer subscriptions with a pause button' },
  { stream: 3, by: 'rhea', each: 'once', title: 'Compare five roasteries’ subscription prices' },
  { stream: 4, each: 'once', title: 'Ask the bank about the loan for the second roaster' },
  { stream: 0, by: 'juno', each: 'once', title: 'Plan the week: who waits for what?' },
]

export const FIRST = [
  'Mara',
  'Jonas',
  'Ines',
  'Tomas',
  'Lea',
  'Emil',
  'Nora',
  'Pavel',
  'Amira',
  'Sven',
  'Clara',
  'Hugo',
  'Zofia',
  'Milan',
  'Ruth',
  'Anton',
  'Selma',
  'Oskar',
  'Dina',
  'Felix',
] as const
export const LAST = [
  'Berg',
  'Novak',
  'Lindholm',
  'Okafor',
  'Silva',
  'Haas',
  'Moreau',
  'Keller',
  'Dahl',
  'Petrov',
  'Santos',
  'Winter',
  'Falk',
  'Marin',
  'Brandt',
] as const
export const TITLES = ['Owner', 'Head barista', 'Buyer', 'Manager', 'Chef', 'Office manager'] as const

export const KNOWLEDGE: readonly {
  kind: 'page' | 'skill' | 'source'
  scope: 'workspace' | 'agent' | 'library'
  title: string
  icon: string
  tags: string[]
  text: string
}[] = [
  {
    kind: 'page',
    scope: 'workspace',
    title: 'Who we are',
    icon: '☀️',
    tags: ['company'],
    text: 'Northlight is a roastery of six people. We roast on Mondays and Thursdays and deliver on the day after. About two thirds of what we sell goes to cafés and hotels, the rest through the shop.',
  },
  {
    kind: 'page',
    scope: 'workspace',
    title: 'How we write',
    icon: '✍️',
    tags: ['voice'],
    text: 'Plain and warm. Short sentences. We name the farm, never the “journey”. No exclamation marks. We say what a coffee tastes of in things people have eaten.',
  },
  {
    kind: 'page',
    scope: 'workspace',
    title: 'What agents may decide',
    icon: '⚖️',
    tags: ['rules'],
    text: 'Agents may draft, research, sort and remind. Prices, promises of delivery and anything that leaves the house need a person’s approval.',
  },
  {
    kind: 'page',
    scope: 'library',
    title: 'Wholesale price list',
    icon: '🏷️',
    tags: ['prices', 'wholesale'],
    text: 'House blend 24.50 a kilo, single origins from 28.00, decaf 27.00. From 20 kilos a month five per cent less, from 60 kilos eight. Delivery is free from 6 kilos.',
  },
  {
    kind: 'page',
    scope: 'library',
    title: 'Delivery days',
    icon: '🚲',
    tags: ['wholesale'],
    text: 'Tuesday: harbour and old town, by bike. Friday: everything beyond the ring road, by van. Orders until noon of the day before.',
  },
  {
    kind: 'page',
    scope: 'library',
    title: 'Roasting day, step by step',
    icon: '🔥',
    tags: ['roastery'],
    text: 'Check the gas, warm up for forty minutes, begin with the decaf. Log charge and drop temperature of every batch. Nothing is packed before it has rested for eight hours.',
  },
  {
    kind: 'page',
    scope: 'library',
    title: 'Cupping sheet explained',
    icon: '🥄',
    tags: ['roastery', 'quality'],
    text: 'Five scores from 6 to 10: fragrance, sweetness, acidity, body, finish. Below 38 in total we do not buy; from 43 a coffee gets its own page.',
  },
  {
    kind: 'page',
    scope: 'library',
    title: 'When a parcel is lost',
    icon: '📦',
    tags: ['shop', 'support'],
    text: 'Wait three working days, then send a new one without asking for proof. Note the order number in the sheet; we claim from the carrier once a month.',
  },
  {
    kind: 'page',
    scope: 'library',
    title: 'Holiday calendar',
    icon: '📅',
    tags: ['company'],
    text: 'We close for the last week of July and between the years. Wholesale customers hear of it six weeks before.',
  },
  {
    kind: 'skill',
    scope: 'agent',
    title: 'Research a café',
    icon: '🔎',
    tags: ['research'],
    text: '1. Website and opening hours. 2. Who owns it and who buys. 3. What they brew now. 4. One reason why we would fit. Give a source for each fact; write “not found” rather than guess.',
  },
  {
    kind: 'skill',
    scope: 'agent',
    title: 'Write a newsletter',
    icon: '📰',
    tags: ['writing'],
    text: 'One story in the first person, one offer with a date, one event. Subject line under 45 characters. Read it aloud once and cut what you stumble over.',
  },
  {
    kind: 'skill',
    scope: 'agent',
    title: 'Explain a number',
    icon: '📐',
    tags: ['analysis'],
    text: 'Say the number, what it was before, and the likeliest reason. Then what would have to be true for the reason to be wrong. Never more than five numbers in one message.',
  },
  {
    kind: 'skill',
    scope: 'agent',
    title: 'Remind a late payer',
    icon: '✉️',
    tags: ['finance'],
    text: 'First reminder: friendly, invoice attached, no deadline. Second, two weeks later: a date. Third: a person calls.',
  },
]

export const COMMENTS = [
  'I have a first version. Two prices are from the old list, I marked them.',
  'They answered: yes to the tasting, but not before the 15th.',
  'Could you check the delivery day? They are beyond the ring road.',
  'Done as far as I can. The last figure needs your bank statement.',
  'I would leave the second paragraph out; it says the same as the first.',
  'Found three sources that agree and one that does not. Details are in the document.',
] as const
export const HUMAN_COMMENTS = [
  'Thank you, that helps. Please keep it to one page.',
  'Good. Use the new price list from Monday on.',
  'Let us wait with this until the roaster is serviced.',
  'Please ask them for a photo of their machine.',
] as const

export const DELIVERABLE = `## Summary

The short version first: it is worth going on, with two open points.

## What I found

- Their present supplier delivers once a week, on Thursdays.
- They sell about 9 kilos a month, two thirds of it as filter.
- The person who decides is in the house on Tuesday mornings.

## Open

1. Whether they own their grinder or rent it.
2. Whether a tasting before opening hours suits them.
`
