// The shapes of the official client of Messages, @anthropic-ai/sdk.
import Anthropic from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';
import { jsonSchemaOutputFormat } from '@anthropic-ai/sdk/helpers/json-schema';

import { functions, paper, picture, question, structure, weather } from './common.mjs';

const described = ([name, f]) => ({ name, description: f.description, input_schema: f.parameters });
const tools = Object.entries(functions).map(described);
const brought = Object.entries({ get_weather: weather }).map(described);
const runnable = Object.entries(functions).map(([name, f]) => betaTool({ name, description: f.description, inputSchema: f.parameters, run: async (given) => JSON.stringify(f.run(given)) }));

const clientOf = ({ root, apiKey }, more) => new Anthropic({ baseURL: root, apiKey, ...more });
const asking = (at, request) => ({ model: at.model, max_tokens: 1000, messages: question, ...request });
const seen = (message) => message.content.map((b) => (b.type === 'tool_use' ? [b.name, b.input] : b.text));

const message = (request, more) => async (at) => seen(await clientOf(at, more).messages.create(asking(at, request)));
const beta = (request) => async (at) => seen(await clientOf(at).beta.messages.create(asking(at, request)));
const streamed = (request) => async (at) => seen(await clientOf(at).messages.stream(asking(at, request)).finalMessage());
const parts = (...list) => message({ messages: [{ role: 'user', content: [...list, { type: 'text', text: 'What is this?' }] }] });
const other = (use) => (at) => use(clientOf(at), at);

export default {
  'anthropic-text': message(),
  'anthropic-stream': streamed(),
  'anthropic-system': message({ system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }], temperature: 0.2, top_k: 40, stop_sequences: ['END'], metadata: { user_id: 'kim' } }),
  'anthropic-thinking': message({ tools, max_tokens: 2000, thinking: { type: 'enabled', budget_tokens: 1024 } }),
  'anthropic-call': message({ tools }),
  'anthropic-call-stream': streamed({ tools }),
  'anthropic-call-result': message({
    tools,
    messages: [
      ...question,
      { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'math_evaluate', input: { expression: '2*(3+4)' } }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: '{"value":14}' }] },
    ],
  }),
  'anthropic-runner': async (at) => seen(await clientOf(at).beta.messages.toolRunner({ ...asking(at, { tools: runnable }), messages: [...question] })),
  'anthropic-parallel': message({ tools }),
  'anthropic-choice': message({ tools, tool_choice: { type: 'any', disable_parallel_tool_use: true } }),
  'anthropic-parse': async (at) => (await clientOf(at).messages.parse(asking(at, { output_config: { format: jsonSchemaOutputFormat(structure) } }))).parsed_output,
  'anthropic-image': parts({ type: 'image', source: { type: 'base64', media_type: 'image/png', data: picture } }),
  'anthropic-document': parts({ type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: paper } }),
  'anthropic-bash': message({ tools: [{ type: 'bash_20250124', name: 'bash' }] }),
  'anthropic-bash-request': message({ tools: [{ type: 'bash_20250124', name: 'bash' }] }),
  'anthropic-brought': message({ tools: brought }),
  'anthropic-brought-request': message({ tools: brought }),
  'anthropic-orchestrate': message({}, { defaultHeaders: { 'Callgate-Mode': 'orchestrate' } }),
  'anthropic-repaired': message({ tools }),
  'anthropic-refused': message({ tools }),
  'anthropic-web-search': message({ tools: [{ type: 'web_search_20250305', name: 'web_search' }] }),
  'anthropic-web-search-allowed': message({ tools: [{ type: 'web_search_20250305', name: 'web_search' }] }),
  'anthropic-mcp': beta({ betas: ['mcp-client-2025-11-20'], mcp_servers: [{ type: 'url', name: 'tides', url: 'https://tides.example' }], tools: [{ type: 'mcp_toolset', mcp_server_name: 'tides' }] }),
  'anthropic-container': beta({ container: 'container_1' }),
  'anthropic-unknown-member': message({ plugins: [{ id: 'web' }] }),
  'anthropic-of-chat': message(),
  'anthropic-unknown-model': message(),
  'anthropic-tokens': other(async (client, at) => String((await client.messages.countTokens({ model: at.model, messages: question })).input_tokens > 0)),
  'anthropic-models': other(async (client) => {
    const ids = [];
    for await (const model of client.models.list()) ids.push(model.id);
    return ids.filter((id) => id === 'text').join();
  }),
  'anthropic-model': other(async (client) => (await client.models.retrieve('text')).id),
  'anthropic-model-unknown': other((client) => client.models.retrieve('nobody')),
  'anthropic-batches': other((client) => client.messages.batches.list()),
  'anthropic-files': other((client) => client.beta.files.list()),
};
