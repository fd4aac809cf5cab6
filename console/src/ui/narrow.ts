/** Where somebody looks at a telephone. */
export const NARROW = "(max-width: 639px)";
