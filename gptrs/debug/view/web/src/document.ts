// The document of a view (gptrs/debug/view/document.py), and how it is read from the page.

export interface Line {
  file?: number;
  line?: number;
  function?: string;
}

export interface Value {
  name: string;
  type: string;
  bytes: number;
  role?: "input" | "parameter" | "derived";
  donated?: boolean;
}

export interface Program {
  params: number[];
  body: number[];
  results: number[];
}

export interface Instruction extends Line {
  op: string;
  kind: string;
  in: number[];
  out: number[];
  text: string;
  flops: number;
  read: number;
  written: number;
  group: number;
  parent?: number;
  regions?: (Program & { name: string })[];
}

export interface Group {
  label: string;
  kind: "program" | "module" | "function";
  parent: number | null;
  class?: string;
  path?: string;
  function?: string;
  line?: number;
}

export interface Stage extends Program {
  name: string;
  ms?: number;
  rules?: { rule: string; count: number }[];
  partial?: boolean;
}

export interface Step {
  kind: string;
  name: string;
  result: string;
  note: string;
  copy: boolean;
  members: number[];
  flops: number;
  ns: number;
  kernels: number[];
  source: string;
}

export interface Kernel {
  name: string;
  source: string;
  llvm: string;
  assembly: string;
}

export interface Plan {
  steps: Step[];
  arena: { values: number[]; offset: number; bytes: number; first: number; last: number }[];
  arena_bytes: number;
  parameter_bytes: number;
  result_bytes: number;
  parameters: { name: string; form: string; bytes: number }[];
  kernels: Kernel[];
}

export interface Failure extends Line {
  type: string;
  text: string;
  group: number | null;
}

export interface Document {
  format: number;
  version: string;
  name: string;
  reason: string;
  where: Line;
  sizes: Record<string, number>;
  error: Failure | null;
  stages: Stage[];
  idle: { name: string; ms: number }[];
  plan: Plan | null;
  measured: Measured | null;
  files: { path: string; text: string }[];
  groups: Group[];
  values: Value[];
  instructions: Instruction[];
}

// Times of the plan's steps in runs of it: nanoseconds from the start of the run.
export interface Measured {
  runs: number;
  steps: { step: number; start: number; ns: number }[];
}

export async function readDocument(): Promise<Document> {
  const text = document.getElementById("document")!.textContent!;
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return (await new Response(stream).json()) as Document;
}
