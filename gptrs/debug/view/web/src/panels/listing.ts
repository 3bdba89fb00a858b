// The source, LLVM IR and assembly of a step's kernels, in a drawer below the panels.

import type { App } from "../app";
import { h, refill } from "../dom";
import { code, type Language } from "./code";

interface Tab {
  name: string;
  text: string;
  language: Language;
}

export class Listing {
  readonly element = h("section.listing", { hidden: true, "aria-label": "code of a step" });
  private step = -1;
  private kernel = 0;
  private tab = "source";

  constructor(private readonly app: App) {}

  open(step: number, tab = "source"): void {
    this.step = step;
    this.kernel = 0;
    this.tab = tab;
    this.element.hidden = false;
    this.draw();
  }

  close(): boolean {
    const open = !this.element.hidden;
    this.element.hidden = true;
    return open;
  }

  private draw(): void {
    const plan = this.app.doc.plan!;
    const step = plan.steps[this.step];
    const kernels = step.kernels.map((number) => plan.kernels[number]);
    const kernel = kernels[this.kernel];
    const tabs: Tab[] = [];
    const source = step.source || kernel?.source || "";
    const isPython = Boolean(step.source) || /^\s*(def|import|from|@)/m.test(source);
    if (source) tabs.push({ name: "source", text: source, language: isPython ? "python" : "llvm" });
    if (kernel?.llvm) tabs.push({ name: "LLVM", text: kernel.llvm, language: "llvm" });
    if (kernel?.assembly) tabs.push({ name: "assembly", text: kernel.assembly, language: "x86asm" });
    const shown = tabs.find((each) => each.name === this.tab) ?? tabs[0];
    const choose = (name: string) => () => {
      this.tab = name;
      this.draw();
    };
    const pick = (event: Event) => {
      this.kernel = Number((event.target as HTMLSelectElement).value);
      this.draw();
    };
    const names = kernels.map((each, n) => h("option", { value: n, selected: n === this.kernel }, each.name));
    const body = shown
      ? h("pre", { tabindex: 0 }, code(shown.text, shown.language))
      : h("p.empty", {}, "This step has no kernel: NumPy runs it, or it does nothing.");
    refill(
      this.element,
      h(
        "header",
        {},
        h("strong", {}, step.name),
        names.length > 1 && h("select", { change: pick, "aria-label": "kernel" }, ...names),
        h("div.tabs", { role: "tablist" }, ...tabs.map(({ name }) => h(`button${name === shown?.name ? ".on" : ""}`, { role: "tab", "aria-selected": name === shown?.name, click: choose(name) }, name))),
        shown && h("button", { click: () => void navigator.clipboard?.writeText(shown.text) }, "copy"),
        h("button.close", { click: () => this.close(), title: "close (Esc)", "aria-label": "close" }, "×"),
      ),
      body,
    );
  }
}
