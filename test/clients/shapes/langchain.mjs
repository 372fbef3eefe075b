// The shapes of LangChain: @langchain/openai, and langchain's agents.
import { HumanMessage, SystemMessage, ToolMessage } from '@langchain/core/messages';
import { ChatOpenAI, OpenAIEmbeddings } from '@langchain/openai';
import { createAgent, providerStrategy, tool, toolStrategy } from 'langchain';
import { z } from 'zod';

import { functions, picture, weather } from './common.mjs';

const made = (all) => Object.entries(all).map(([name, f]) => tool(async (given) => JSON.stringify(f.run(given)), { name, description: f.description, schema: f.parameters }));
const tools = made(functions);
const brought = made({ get_weather: weather });
const structured = z.object({ rises: z.number(), body: z.string() });

const modelOf = ({ baseURL, apiKey, model }, more) => new ChatOpenAI({ model, apiKey, configuration: { baseURL }, ...more });

const text = (more, messages = 'Please.') => async (at) => (await modelOf(at, more).invoke(messages)).text;
const format = (method) => async (at) => modelOf(at).withStructuredOutput(structured, { name: 'extract', method }).invoke('Please.');
const agent = (options, more) => async (at) => {
  const got = await createAgent({ model: modelOf(at, more), tools, ...options }).invoke({ messages: [{ role: 'user', content: 'Please.' }] });
  return got.structuredResponse ?? got.messages.at(-1).text;
};

export default {
  'langchain-text': text(),
  'langchain-stream': async (at) => {
    let all = '';
    for await (const piece of await modelOf(at).stream('Please.')) all += piece.text;
    return all;
  },
  'langchain-options': text({ temperature: 0.2, maxTokens: 100, topP: 0.9, frequencyPenalty: 0.1, stop: ['END'], modelKwargs: { top_k: 40 } }, [new SystemMessage('Be brief.'), new HumanMessage('Please.')]),
  'langchain-option-unknown': text({ modelKwargs: { plugins: [{ id: 'web' }] } }),
  'langchain-image': text({}, [new HumanMessage({ content: [{ type: 'text', text: 'What is this?' }, { type: 'image_url', image_url: { url: `data:image/png;base64,${picture}` } }] })]),
  'langchain-calls': async (at) => (await modelOf(at).bindTools(tools).invoke('Please.')).tool_calls.map((c) => [c.name, c.args]),
  'langchain-loop': async (at) => {
    const model = modelOf(at).bindTools(tools);
    const messages = [new HumanMessage('Please.')];
    for (let turn = 0; turn < 5; turn++) {
      const got = await model.invoke(messages);
      messages.push(got);
      if (got.tool_calls.length === 0) return got.text;
      for (const call of got.tool_calls) {
        messages.push(new ToolMessage({ tool_call_id: call.id, content: JSON.stringify(functions[call.name].run(call.args)) }));
      }
    }
    return 'no end';
  },
  'langchain-format-schema': format('jsonSchema'),
  'langchain-format-json': format('jsonMode'),
  'langchain-format-function': format('functionCalling'),
  'langchain-format-function-request': format('functionCalling'),
  'langchain-agent': agent(),
  'langchain-agent-brought': agent({ tools: brought }),
  'langchain-agent-brought-request': agent({ tools: brought }),
  'langchain-agent-provider': agent({ tools: [], responseFormat: providerStrategy(structured) }),
  'langchain-agent-tool': agent({ responseFormat: toolStrategy({ type: 'object', title: 'extract-1', properties: { rises: { type: 'number' }, body: { type: 'string' } }, required: ['rises', 'body'], additionalProperties: false }) }),
  'langchain-agent-tool-request': agent({ responseFormat: toolStrategy({ type: 'object', title: 'extract-1', properties: { rises: { type: 'number' }, body: { type: 'string' } }, required: ['rises', 'body'], additionalProperties: false }) }),
  // LangChain repeats a 422 six times, whatever x-should-retry says.
  'langchain-refused': agent({}, { maxRetries: 0 }),
  'langchain-responses': text({ useResponsesApi: true, zdrEnabled: true }),
  'langchain-responses-agent': agent({}, { useResponsesApi: true, zdrEnabled: true }),
  'langchain-responses-of-chat': text({ useResponsesApi: true, zdrEnabled: true }),
  'langchain-embeddings': ({ baseURL, apiKey, model }) => new OpenAIEmbeddings({ model, apiKey, configuration: { baseURL } }).embedQuery('tides'),
};
