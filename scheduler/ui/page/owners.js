// Which team a pod belongs to: the quota that owns its namespace. Where no quota owns any, nobody is
// limited and namespaces stand for teams.

export const NO_TEAM = 'no team';

export class Owners {
  #leaves = new Map();  // namespace -> quota that owns it

  constructor(quotas = []) {
    for (const quota of quotas) {
      for (const namespace of quota.namespaces) this.#leaves.set(namespace, quota.name);
    }
  }

  // Are there teams, or do namespaces stand for them?
  get declared() {
    return this.#leaves.size > 0;
  }

  of(namespace) {
    return this.#leaves.get(namespace) ?? (this.declared ? NO_TEAM : namespace);
  }
}
