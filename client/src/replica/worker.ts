/** The entry of the database worker, one per tab. */
export {}
