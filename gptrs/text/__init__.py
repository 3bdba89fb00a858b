"""Text generation: tokenizer, sampling, decoding loop, stop strings.

Works on any model with the protocol `causal_model.CausalModel`; knows no files but tokenizer.json.
`gptrs.loading.language_model` is the caller.

| module | contents |
|---|---|
| `tokenizer` | ``tokenizer.json`` → token ids and back |
| `growth` | bounds on how much a tokenizer.json can expand a text |
| `options` | `GenerationOptions`, checked at construction |
| `prompts` | checks of prompts and options against a model |
| `causal_model` | the interface of a model |
| `configured_model` | a model with the options that it was loaded with |
| `generation` | prefill and decode loop over a batch of rows |
| `prefill` | prompts in chunks |
| `speculation` | guesses from the text before, checked several at a time |
| `draft_model` | guesses of a smaller model |
| `sampling` | greedy, temperature, top-k, top-p, min-p |
| `penalties` | logit bias; repetition, presence and frequency penalties |
| `logprobs` | log-probabilities of tokens |
| `streaming` | incremental detokenization with stop strings |
| `completion` | whole completions, and streams of text |
| `messages` | checks of messages and tools of the OpenAI API |
| `function_schema` | Python functions as tools |
| `chat_template` | messages → text, by jinja2 |
| `template_sandbox` | the environment of templates |
| `template_charges`, `template_budget` | bounds of their work |
| `reply` | thoughts and content of an answer |
| `tool_calls` | calls of tools in an answer |
| `chat` | answers to messages |
| `session` | a KV cache that is kept between texts |

Order of one text: `tokenizer.encode` → `prompts` → `generation` (model call → `penalties` →
`sampling` → `logprobs`, once per token) → `streaming` → `completion`. Of an answer: `messages` →
`chat_template` → `tokenizer` → `generation` → `reply` → `tool_calls` → `chat`.
"""
