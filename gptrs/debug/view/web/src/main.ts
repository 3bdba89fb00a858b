// The page: header, outline, panels, inspector; keys that work everywhere.

import { App, PANELS, type Panel } from "./app";
import { readDocument, type Document } from "./document";
import { h, refill } from "./dom";
import { bytes, count, flops, plural, time } from "./format";
import { GraphPanel } from "./graph/panel";
import { Inspector } from "./panels/inspector";
import { Listing } from "./panels/listing";
import { MemoryPanel } from "./panels/memory";
import { Outline } from "./panels/outline";
import { PassesPanel } from "./panels/passes";
import { Search } from "./panels/search";
import { TimelinePanel } from "./panels/timeline";

import "./view.css";

const KEYS: [string, string][] = [
  ["/", "search"],
  ["1 2 3 4", "graph, passes, timeline, memory"],
  ["[ ]", "the pass before, the next one"],
  ["↑ ↓ ← →", "in the graph: makers, readers, neighbours; in the timeline: steps"],
  ["Enter", "open or close a module; the code of a step"],
  ["e  c", "open all, close all"],
  ["+ − 0", "zoom, fit"],
  ["t", "dark or light"],
  ["Esc", "close, select nothing"],
];

function chips(doc: Document, app: App): Node[] {
  const chip = (text: string, title: string, mark = "") => h(`span.chip${mark}`, { title }, text);
  const found: Node[] = [];
  if (doc.error) found.push(chip(doc.error.type, doc.error.text, ".bad"));
  if (doc.stages.length) {
    const last = doc.stages[doc.stages.length - 1];
    found.push(chip(`${count(doc.stages[0].body.length)} → ${plural(last.body.length, "op")}`, "instructions as traced, and after all passes"));
    const work = app.model.totals(0)[0].flops;
    if (work) found.push(chip(flops(work), "floating-point operations"));
  }
  if (doc.plan) {
    found.push(chip(plural(doc.plan.steps.length, "step"), "of the plan"));
    found.push(chip(`${bytes(doc.plan.arena_bytes)} arena`, "memory of intermediate values"));
    const whole = doc.plan.steps.reduce((sum, step) => sum + step.ns, 0);
    found.push(chip(`≈ ${time(whole)}`, "estimate of the time of a run on one thread"));
  }
  return found;
}

function help(): HTMLElement {
  const rows = KEYS.flatMap(([keys, what]) => [h("dt", {}, ...keys.split(/\s+/).map((key) => h("kbd", {}, key))), h("dd", {}, what)]);
  const dialog = h("dialog.help", { click: (event: Event) => event.target === event.currentTarget && (dialog as HTMLDialogElement).close() }, h("h2", {}, "Keys"), h("dl", {}, ...rows)) as HTMLDialogElement;
  return dialog;
}

function switchTheme(): void {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
}

async function main(): Promise<void> {
  const doc = await readDocument();
  const app = new App(doc);
  const listing = new Listing(app);
  const inspector = new Inspector(app, listing);
  const outline = new Outline(app);
  const search = new Search(app);
  const graph = new GraphPanel(app);
  const passes = new PassesPanel(app);
  const timeline = new TimelinePanel(app, listing);
  const memory = new MemoryPanel(app);
  const panels = { graph, passes, timeline, memory };
  const keys = help() as HTMLDialogElement;

  const tabs = PANELS.map((name) => h("button.tab", { role: "tab", "data-tab": name, click: () => app.setPanel(name) }, name));
  const header = h(
    "header.top",
    {},
    h("h1", {}, doc.name),
    h("div.chips", {}, ...chips(doc, app)),
    h("nav.tabs", { role: "tablist" }, ...tabs),
    search.element,
    h("button.icon", { title: "dark or light (t)", "aria-label": "dark or light", click: switchTheme }, "◐"),
    h("button.icon", { title: "keys (?)", "aria-label": "keys", click: () => keys.showModal() }, "?"),
  );
  const banner = doc.error ? h("button.banner", { role: "alert", click: () => app.select(null) }, h("strong", {}, `${doc.error.type}: `), doc.error.text.split("\n")[0], h("i", {}, doc.plan ? "" : " — drawn up to there")) : null;
  const work = h("main", {}, graph.element, passes.element, timeline.element, memory.element, listing.element);
  const root = document.getElementById("app")!;
  refill(root, header, banner, h("div.columns", {}, outline.element, work, inspector.element), keys);
  root.classList.toggle("with-banner", banner !== null);

  const show = () => {
    for (const name of PANELS) panels[name].element.hidden = name !== app.panel;
    tabs.forEach((tab) => {
      const on = tab.dataset.tab === app.panel;
      tab.classList.toggle("on", on);
      tab.setAttribute("aria-selected", String(on));
    });
    panels[app.panel].show();
    outline.show();
    inspector.show();
  };
  app.onChange(show);
  show();
  document.body.dataset.ready = "true";

  const zoomable = () => (app.panel === "timeline" ? timeline : graph);
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    if (event.ctrlKey || event.metaKey || event.altKey || (typing && event.key !== "Escape")) return;
    const actions: Record<string, () => void> = {
      "/": () => search.input.focus(),
      "?": () => keys.showModal(),
      t: switchTheme,
      "[": () => app.setStage(app.stage - 1),
      "]": () => app.setStage(app.stage + 1),
      "+": () => zoomable().zoomBy(1.3),
      "=": () => zoomable().zoomBy(1.3),
      "-": () => zoomable().zoomBy(1 / 1.3),
      "0": () => zoomable().fit(),
      e: () => app.panel === "graph" && graph.openAll(),
      c: () => app.panel === "graph" && graph.closeAll(),
      Escape: () => listing.close() || app.select(null),
    };
    PANELS.forEach((name: Panel, n) => (actions[String(n + 1)] = () => app.setPanel(name)));
    const action = actions[event.key];
    if (!action) {
      if (event.key.startsWith("Arrow") && app.panel === "graph" && event.target === document.body) graph.focus();
      return;
    }
    event.preventDefault();
    action();
  });
}

void main();
