// The shapes of the official client, openai.
import OpenAI, { AzureOpenAI, toFile } from 'openai';
import { zodFunction, zodResponseFormat, zodTextFormat } from 'openai/helpers/zod';
import { z } from 'zod';

import { functions, paper, picture, question, sound, structure, weather } from './common.mjs';

const described = (name, f) => ({ type: 'function', function: { name, description: f.description, parameters: f.parameters } });
const tools = Object.entries(functions).map(([name, f]) => described(name, f));
const runnable = tools.map((t) => ({ ...t, function: { ...t.function, parse: JSON.parse, function: async (given) => JSON.stringify(functions[t.function.name].run(given)) } }));
const brought = [described('get_weather', weather)];
const flat = (list) => list.map((t) => ({ type: 'function', strict: true, ...t.function }));
const structured = z.object({ rises: z.number(), body: z.string() });

const clientOf = ({ baseURL, apiKey }, more) => new OpenAI({ baseURL, apiKey, ...more });

// The answer of a client of chat completions to a request.
const chat = (request, more) => async (at) => {
  const got = await clientOf(at, more).chat.completions.create({ model: at.model, messages: question, ...request });
  const { message } = got.choices[0];
  return message.tool_calls ? message.tool_calls.map((c) => c.function) : message.content;
};

const streamed = (request, more) => async (at) => {
  let text = '';
  let usage;
  for await (const chunk of await clientOf(at, more).chat.completions.create({ model: at.model, messages: question, stream: true, ...request })) {
    text += chunk.choices[0]?.delta.content ?? '';
    for (const call of chunk.choices[0]?.delta.tool_calls ?? []) text += (call.function.name ?? '') + (call.function.arguments ?? '');
    usage = chunk.usage ?? usage;
  }
  return request?.stream_options ? { text, usage: usage.total_tokens > 0 } : text;
};

const parts = (...list) => chat({ messages: [{ role: 'user', content: [{ type: 'text', text: 'What is this?' }, ...list] }] });

// A call and its result, as a second request sends them.
const answeredBy = (content) => [
  ...question,
  { role: 'assistant', content: null, tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'math_evaluate', arguments: '{"expression":"2*(3+4)"}' } }] },
  { role: 'tool', tool_call_id: 'call_1', content },
];

const response = (request) => async (at) => {
  const got = await clientOf(at).responses.create({ model: at.model, input: 'Please.', store: false, ...request });
  return got.output_text || got.output.filter((item) => item.name).map((item) => [item.name, item.arguments ?? item.input]);
};

// A request by another part of the client.
const other = (use) => (at) => use(clientOf(at), at);

export default {
  'openai-text': chat(),
  'openai-stream': streamed(),
  'openai-stream-usage': streamed({ stream_options: { include_usage: true } }),
  'openai-stream-helper': (at) => clientOf(at).chat.completions.stream({ model: at.model, messages: question }).finalContent(),
  'openai-choices': async (at) => (await clientOf(at).chat.completions.create({ model: at.model, messages: question, n: 2 })).choices.map((c) => c.message.content),
  'openai-call': chat({ tools }),
  'openai-call-stream': streamed({ tools }),
  'openai-call-result': chat({ tools, messages: answeredBy('{"value":14}') }),
  'openai-call-result-parts': chat({ tools, messages: answeredBy([{ type: 'text', text: '{"value":14}' }]) }),
  'openai-call-result-without-tools': chat({ messages: answeredBy('{"value":14}') }),
  'openai-run-tools': (at) => clientOf(at).chat.completions.runTools({ model: at.model, messages: question, tools: runnable }).finalContent(),
  'openai-run-tools-stream': (at) => clientOf(at).chat.completions.runTools({ model: at.model, messages: question, tools: runnable, stream: true }).finalContent(),
  'openai-parallel': chat({ tools }),
  'openai-parallel-loop': (at) => clientOf(at).chat.completions.runTools({ model: at.model, messages: question, tools: runnable }).finalContent(),
  'openai-one-call': chat({ tools, parallel_tool_calls: false }),
  'openai-choice-required': chat({ tools, tool_choice: 'required' }),
  'openai-choice-none': chat({ tools, tool_choice: 'none' }),
  'openai-choice-named': chat({ tools, tool_choice: { type: 'function', function: { name: 'math_evaluate' } } }),
  'openai-choice-allowed': chat({ tools, tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name: 'math_evaluate' } }] } } }),
  'openai-json-object': chat({ response_format: { type: 'json_object' } }),
  'openai-json-schema': chat({ response_format: { type: 'json_schema', json_schema: { name: 'tides', strict: true, schema: structure } } }),
  'openai-parse': async (at) => {
    const got = await clientOf(at).chat.completions.parse({ model: at.model, messages: question, response_format: zodResponseFormat(structured, 'tides') });
    return got.choices[0].message.parsed;
  },
  'openai-parse-tools': async (at) => {
    const tool = zodFunction({ name: 'math_evaluate', parameters: z.object({ expression: z.string() }) });
    const got = await clientOf(at).chat.completions.parse({ model: at.model, messages: question, tools: [tool] });
    return got.choices[0].message.tool_calls[0].function.parsed_arguments;
  },
  'openai-image': parts({ type: 'image_url', image_url: { url: `data:image/png;base64,${picture}`, detail: 'low' } }),
  'openai-audio-part': parts({ type: 'input_audio', input_audio: { data: sound, format: 'wav' } }),
  'openai-file-part': parts({ type: 'file', file: { filename: 'tides.pdf', file_data: `data:application/pdf;base64,${paper}` } }),
  'openai-developer': chat({ messages: [{ role: 'developer', content: 'Be brief.' }, ...question] }),
  'openai-system-name': chat({ messages: [{ role: 'system', content: [{ type: 'text', text: 'Be brief.' }] }, { role: 'user', name: 'kim', content: 'Please.' }] }),
  'openai-history': chat({ messages: [...question, { role: 'assistant', content: 'Yes?', refusal: null, annotations: [] }, ...question] }),
  'openai-parameters': chat({
    temperature: 0.2, top_p: 0.9, max_completion_tokens: 100, seed: 7, stop: ['END'], presence_penalty: 0.1, frequency_penalty: 0.1, logit_bias: { 50256: -100 },
    user: 'kim', metadata: { team: 'tides' }, store: false, service_tier: 'auto', reasoning_effort: 'low', verbosity: 'low', modalities: ['text'],
    prediction: { type: 'content', content: 'No tool' }, prompt_cache_key: 'tides', safety_identifier: 'kim', logprobs: true, top_logprobs: 2,
  }),
  'openai-vendor-parameters': chat({ top_k: 40, min_p: 0.05, repetition_penalty: 1.1, chat_template_kwargs: { enable_thinking: false }, provider: { order: ['a'] } }),
  'openai-unknown-member': chat({ plugins: [{ id: 'web' }] }),
  'openai-web-search': chat({ web_search_options: {} }),
  'openai-member-allowed': chat({ plugins: [{ id: 'web' }] }),
  'openai-custom-tool': chat({ tools: [{ type: 'custom', custom: { name: 'run_code', description: 'Runs code.' } }] }),
  'openai-functions': chat({ functions: tools.map((t) => t.function) }),
  'openai-function-message': chat({ messages: [...question, { role: 'function', name: 'math_evaluate', content: '14' }] }),
  'openai-brought': chat({ tools: brought }),
  'openai-brought-request': chat({ tools: brought }),
  'openai-brought-open': chat({ tools: [described('get_weather', { ...weather, parameters: { type: 'object', properties: { city: { type: 'string' }, place: { type: 'object' } } } })] }),
  'openai-orchestrate': chat({}, { defaultHeaders: { 'Callgate-Mode': 'orchestrate' } }),
  'openai-orchestrate-stream': streamed({}, { defaultHeaders: { 'Callgate-Mode': 'orchestrate' } }),
  'openai-mode': chat({}, { defaultHeaders: { 'Callgate-Mode': 'orchestrate' } }),
  'openai-repaired': chat({ tools }),
  'openai-refused': chat({ tools }),
  'openai-refused-stream': streamed({ tools }),
  'openai-refused-message': chat({ tools }),
  'openai-denied': chat({ tools: [described('payments_refund', { description: 'Pays back.', parameters: { type: 'object' } }), ...tools] }),
  'openai-denied-choice': chat({ tools: [described('payments_refund', { description: 'Pays back.', parameters: { type: 'object' } })], tool_choice: 'required' }),
  'openai-models': async (at) => {
    const ids = [];
    for await (const model of clientOf(at).models.list()) ids.push(model.id);
    return ids.filter((id) => id === 'text').join();
  },
  'openai-model': other(async (client) => (await client.models.retrieve('text')).id),
  'openai-model-unknown': other((client) => client.models.retrieve('nobody')),
  'openai-model-delete': other((client) => client.models.delete('text')),
  'openai-chat-unknown-model': chat(),
  'openai-chat-of-responses': chat(),
  'openai-embeddings': other((client, at) => client.embeddings.create({ model: at.model, input: 'tides' })),
  'openai-moderations': other((client) => client.moderations.create({ input: 'tides' })),
  'openai-completions': other((client, at) => client.completions.create({ model: at.model, prompt: 'The sea' })),
  'openai-images': other((client) => client.images.generate({ prompt: 'the sea' })),
  'openai-speech': other((client, at) => client.audio.speech.create({ model: at.model, voice: 'alloy', input: 'tides' })),
  'openai-transcription': other(async (client, at) => client.audio.transcriptions.create({ model: at.model, file: await toFile(Buffer.from(sound, 'base64'), 'a.wav') })),
  'openai-files': other((client) => client.files.list()),
  'openai-batches': other((client) => client.batches.list()),
  'openai-stored': other((client) => client.chat.completions.list()),
  'openai-threads': other((client) => client.beta.threads.create()),
  'openai-vector-stores': other((client) => client.vectorStores.list()),
  'openai-azure': ({ root, apiKey, model }) =>
    new AzureOpenAI({ endpoint: root, apiKey, apiVersion: '2025-04-01-preview', deployment: model }).chat.completions.create({ model, messages: question }),
  'openai-responses': response(),
  'openai-responses-stream': async (at) => {
    let text = '';
    for await (const event of await clientOf(at).responses.create({ model: at.model, input: 'Please.', store: false, stream: true })) {
      if (event.type === 'response.output_text.delta') text += event.delta;
    }
    return text;
  },
  'openai-responses-call': response({ tools: flat(tools) }),
  'openai-responses-result': response({
    tools: flat(tools),
    input: [
      ...question,
      { type: 'function_call', call_id: 'call_1', name: 'math_evaluate', arguments: '{"expression":"2*(3+4)"}' },
      { type: 'function_call_output', call_id: 'call_1', output: '{"value":14}' },
    ],
  }),
  'openai-responses-parse': async (at) =>
    (await clientOf(at).responses.parse({ model: at.model, input: 'Please.', store: false, text: { format: zodTextFormat(structured, 'tides') } })).output_parsed,
  'openai-responses-image': response({
    input: [{ role: 'user', content: [{ type: 'input_text', text: 'What is this?' }, { type: 'input_image', detail: 'low', image_url: `data:image/png;base64,${picture}` }] }],
  }),
  'openai-responses-parameters': response({ instructions: 'Be brief.', temperature: 0.2, max_output_tokens: 100, reasoning: { effort: 'low' }, metadata: { team: 'tides' }, truncation: 'auto', include: ['reasoning.encrypted_content'] }),
  'openai-responses-brought': response({ tools: flat(brought) }),
  'openai-responses-brought-request': response({ tools: flat(brought) }),
  'openai-responses-custom': response({ tools: [{ type: 'custom', name: 'run_code', description: 'Runs code.' }] }),
  'openai-responses-web-search': response({ tools: [{ type: 'web_search' }] }),
  'openai-responses-web-search-allowed': response({ tools: [{ type: 'web_search' }] }),
  'openai-responses-mcp': response({ tools: [{ type: 'mcp', server_label: 'tides', server_url: 'https://tides.example', require_approval: 'never' }] }),
  'openai-responses-previous': response({ previous_response_id: 'resp_1' }),
  'openai-responses-conversation': response({ conversation: 'conv_1' }),
  'openai-responses-background': response({ background: true }),
  'openai-responses-prompt': response({ prompt: { id: 'pmpt_1' } }),
  'openai-responses-logprobs': response({ include: ['message.output_text.logprobs'] }),
  'openai-responses-unknown-member': response({ context_management: [{ type: 'compaction' }] }),
  'openai-responses-of-chat': response(),
  'openai-responses-retrieve': other((client) => client.responses.retrieve('resp_1')),
  'openai-responses-cancel': other((client) => client.responses.cancel('resp_1')),
  'openai-responses-tokens': other(async (client, at) => String((await client.responses.inputTokens.count({ model: at.model, input: 'Please.' })).input_tokens > 0)),
};
