// The state of the page and what changes it: stage, selection, panel, theme.

import type { Document } from "./document";
import { Model, type Selection } from "./model";

export type Panel = "graph" | "passes" | "timeline" | "memory";
export const PANELS: Panel[] = ["graph", "passes", "timeline", "memory"];

export class App {
  readonly model: Model;
  stage = 0;
  panel: Panel = "graph";
  selection: Selection = null;
  private readonly listeners: (() => void)[] = [];
  private readonly bodies = new Map<number, Set<number>>();

  constructor(readonly doc: Document) {
    this.model = new Model(doc);
    this.stage = 0;
    if (doc.error && doc.error.group !== null) this.selection = { kind: "group", id: doc.error.group };
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  private changed(): void {
    for (const listener of this.listeners) listener();
  }

  /** The instructions of a stage's program. */
  bodyOf(stage: number): Set<number> {
    let found = this.bodies.get(stage);
    if (!found) this.bodies.set(stage, (found = new Set(this.doc.stages[stage].body)));
    return found;
  }

  setStage(stage: number): void {
    this.stage = Math.max(0, Math.min(stage, this.doc.stages.length - 1));
    this.changed();
  }

  setPanel(panel: Panel): void {
    this.panel = panel;
    this.changed();
  }

  /** Select something; the stage changes where the current one does not have it. */
  select(selection: Selection): void {
    this.selection = selection;
    const ids = this.instructionsOf(selection);
    if (ids.length && !ids.some((id) => this.bodyOf(this.stage).has(this.model.top(id)))) {
      const stages = this.model.stages(ids[0]);
      if (stages.length) this.stage = stages[stages.length - 1];
    }
    this.changed();
  }

  private instructionsOf(selection: Selection): number[] {
    if (selection?.kind === "instruction") return [selection.id];
    if (selection?.kind === "step") return this.doc.plan!.steps[selection.id].members;
    return [];
  }
}
