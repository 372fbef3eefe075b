// The shapes of the Vercel AI SDK, ai, with @ai-sdk/openai-compatible and @ai-sdk/openai.
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { embed, generateImage, generateObject, generateText, jsonSchema, Output, stepCountIs, streamText, tool } from 'ai';

import { functions, paper, picture, structure, weather } from './common.mjs';

const made = (all) => Object.fromEntries(Object.entries(all).map(([name, f]) => [name, tool({ description: f.description, inputSchema: jsonSchema(f.parameters), execute: async (given) => f.run(given) })]));
const tools = made(functions);
const brought = made({ get_weather: weather });
const schema = jsonSchema(structure);

const compatible = (more) => ({ baseURL, apiKey }) => createOpenAICompatible({ name: 'callgate', baseURL, apiKey, ...more });
const openai = ({ baseURL, apiKey }) => createOpenAI({ baseURL, apiKey });
// The models of a provider.
const plain = (at) => compatible()(at)(at.model);
const formats = (at) => compatible({ supportsStructuredOutputs: true })(at)(at.model);
const orchestrated = (at) => compatible({ headers: { 'Callgate-Mode': 'orchestrate' } })(at)(at.model);
const chat = (at) => openai(at).chat(at.model);
const byDefault = (at) => openai(at)(at.model);

// Responses are kept at the provider unless a request says otherwise.
const providerOptions = { openai: { store: false } };
const prompt = 'Please.';

const text = (modelOf, request) => async (at) => (await generateText({ model: modelOf(at), prompt, providerOptions, ...request })).text;
const calls = (modelOf, request) => async (at) => {
  const got = await generateText({ model: modelOf(at), prompt, providerOptions, tools, ...request });
  return got.toolCalls.map((c) => [c.toolName, c.input]);
};
const loop = (modelOf, request) => text(modelOf, { tools, stopWhen: stepCountIs(5), ...request });
const streamed = (modelOf, request) => async (at) => {
  let all = '';
  let fault;
  for await (const part of streamText({ model: modelOf(at), prompt, providerOptions, onError() {}, ...request }).fullStream) {
    if (part.type === 'text-delta') all += part.text;
    if (part.type === 'error') fault = part.error;
  }
  if (fault) throw fault;
  return all;
};
const object = (modelOf) => async (at) => (await generateObject({ model: modelOf(at), prompt, schema, providerOptions })).object;
const parts = (...list) => ({ prompt: undefined, messages: [{ role: 'user', content: [{ type: 'text', text: 'What is this?' }, ...list] }] });

export default {
  'ai-text': text(plain),
  'ai-stream': streamed(plain),
  'ai-system': text(plain, { instructions: 'Be brief.', temperature: 0.2, topP: 0.9, maxOutputTokens: 100, seed: 7, stopSequences: ['END'] }),
  'ai-calls': calls(plain),
  'ai-loop': loop(plain),
  'ai-loop-stream': streamed(plain, { tools, stopWhen: stepCountIs(5) }),
  'ai-parallel': loop(plain),
  'ai-choice': calls(plain, { toolChoice: 'required' }),
  'ai-choice-named': calls(plain, { toolChoice: { type: 'tool', toolName: 'math_evaluate' } }),
  'ai-object': object(plain),
  'ai-object-schema': object(formats),
  'ai-output': async (at) => (await generateText({ model: formats(at), prompt, output: Output.object({ schema }) })).output,
  'ai-image': text(plain, parts({ type: 'file', mediaType: 'image/png', data: picture })),
  'ai-file': text(plain, parts({ type: 'file', mediaType: 'application/pdf', data: paper, filename: 'tides.pdf' })),
  'ai-options': text(plain, { providerOptions: { callgate: { top_k: 40, reasoningEffort: 'low' } } }),
  'ai-option-unknown': text(plain, { providerOptions: { callgate: { plugins: [{ id: 'web' }] } } }),
  'ai-brought': loop(plain, { tools: brought }),
  'ai-brought-request': loop(plain, { tools: brought }),
  'ai-orchestrate': text(orchestrated),
  'ai-refused': loop(plain),
  'ai-embed': (at) => embed({ model: compatible()(at).embeddingModel(at.model), value: 'tides' }),
  'ai-picture': (at) => generateImage({ model: compatible()(at).imageModel(at.model), prompt: 'the sea' }),
  'ai-completion': (at) => text(() => compatible()(at).completionModel(at.model))(at),
  'ai-openai-chat': text(chat),
  'ai-openai-chat-loop': loop(chat),
  'ai-openai-chat-object': object(chat),
  'ai-openai-default': text(byDefault),
  'ai-openai-default-loop': loop(byDefault),
  'ai-openai-default-object': object(byDefault),
  'ai-openai-default-of-chat': text(byDefault),
  'ai-openai-web-search': (at) => text(byDefault, { tools: { web_search: openai(at).tools.webSearch({}) } })(at),
};
