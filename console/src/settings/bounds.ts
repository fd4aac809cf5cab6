/** Longest name of a member, a key or a tenant, in characters: the server's bound. */
export const MAX_NAME = 255;
/** Longest short name of a tenant. */
export const MAX_SLUG = 63;
