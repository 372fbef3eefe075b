// The shapes of the OpenAI Agents SDK, @openai/agents.
import { Agent, handoff, hostedMcpTool, OpenAIProvider, Runner, setTracingDisabled, tool, webSearchTool } from '@openai/agents';
import { z } from 'zod';

import { functions, weather } from './common.mjs';

setTracingDisabled(true);

const made = (all) =>
  Object.entries(all).map(([name, f]) => tool({ name, description: f.description, parameters: { ...f.parameters, additionalProperties: true }, strict: false, execute: async (given) => JSON.stringify(f.run(given)) }));
const tools = made(functions);
const brought = made({ get_weather: weather });

const agentOf = (at, more) => new Agent({ name: 'Tides', instructions: 'Be brief.', model: at.model, modelSettings: { store: false }, ...more });
const helper = (at) => new Agent({ name: 'Weather', instructions: 'Answer.', handoffDescription: 'Knows the weather.', model: 'text', modelSettings: { store: false } });

// The final output of a run by either API: setOpenAIAPI('chat_completions') is useResponses: false.
const run = (useResponses, options, more) => async (at) => {
  const runner = new Runner({ modelProvider: new OpenAIProvider({ baseURL: at.baseURL, apiKey: at.apiKey, useResponses }) });
  return (await runner.run(agentOf(at, options?.(at)), 'Please.', more)).finalOutput;
};
const streamed = (useResponses, options) => async (at) => {
  const runner = new Runner({ modelProvider: new OpenAIProvider({ baseURL: at.baseURL, apiKey: at.apiKey, useResponses }) });
  const got = await runner.run(agentOf(at, options?.(at)), 'Please.', { stream: true });
  for await (const event of got) if (!event.type) throw new Error('an event without a type');
  await got.completed;
  return got.finalOutput;
};

const withTools = () => ({ tools });
const withBrought = () => ({ tools: brought });
const withHandoff = (at) => ({ handoffs: [handoff(helper(at))] });
const withAgent = (at) => ({ tools: [helper(at).asTool({ toolName: 'ask_weather', toolDescription: 'Asks about the weather.' })] });
const withOutput = () => ({ outputType: z.object({ rises: z.number(), body: z.string() }) });

const shapes = {};
for (const [name, useResponses] of Object.entries({ chat: false, responses: true })) {
  Object.assign(shapes, {
    [`agents-${name}-text`]: run(useResponses),
    [`agents-${name}-stream`]: streamed(useResponses),
    [`agents-${name}-loop`]: run(useResponses, withTools),
    [`agents-${name}-loop-stream`]: streamed(useResponses, withTools),
    [`agents-${name}-output`]: run(useResponses, withOutput),
    [`agents-${name}-brought`]: run(useResponses, withBrought),
    [`agents-${name}-brought-request`]: run(useResponses, withBrought),
    [`agents-${name}-handoff`]: run(useResponses, withHandoff),
    [`agents-${name}-handoff-request`]: run(useResponses, withHandoff),
    [`agents-${name}-as-tool`]: run(useResponses, withAgent),
    [`agents-${name}-as-tool-request`]: run(useResponses, withAgent),
    [`agents-${name}-refused`]: run(useResponses, withTools),
  });
}

export default {
  ...shapes,
  'agents-responses-of-chat': run(true),
  'agents-responses-web-search': run(true, () => ({ tools: [webSearchTool()] })),
  'agents-responses-mcp': run(true, () => ({ tools: [hostedMcpTool({ serverLabel: 'tides', serverUrl: 'https://tides.example' })] })),
  'agents-responses-previous': run(true, undefined, { previousResponseId: 'resp_1' }),
  'agents-responses-conversation': run(true, undefined, { conversationId: 'conv_1' }),
};
