/** Agents as people know them, by the ids that records have; one that is gone keeps its id. Pure. */
export const agentNames = (ids: readonly string[], agents: readonly { readonly uuid: string; readonly id: string }[]): readonly string[] => ids.map((id) => agents.find(({ uuid }) => uuid === id)?.id ?? id);
