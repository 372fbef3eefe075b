// The Vercel AI SDK, ai, with the providers of Messages and of Responses.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { APICallError, generateObject, generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai';

import { places, structure, structured, thought, tooMany } from './faces.mjs';
import { counting, endings, functions } from './places.mjs';

const prompt = 'Please.';

const described = ([name, f]) => [name, tool({ description: f.description, inputSchema: jsonSchema(f.parameters) })];
const runnable = ([name, f]) => [name, tool({ description: f.description, inputSchema: jsonSchema(f.parameters), execute: async (given) => f.run(given) })];
const tools = Object.fromEntries(Object.entries(functions).map(described));
const running = Object.fromEntries(Object.entries(functions).map(runnable));

const providers = {
  '@ai-sdk/anthropic': (place, scenario, more) => createAnthropic({ baseURL: place.baseURL, apiKey: 'unused', ...more })(place.model(scenario)),
  '@ai-sdk/openai': (place, scenario, more) => createOpenAI({ baseURL: place.baseURL, apiKey: 'unused', ...more }).responses(place.model(scenario)),
};

// The API's own options: nothing is kept by the provider.
const providerOptions = { openai: { store: false } };

async function whole(stream) {
  const got = { text: '', calls: [], error: undefined };
  for await (const part of stream.fullStream) {
    if (part.type === 'text-delta') got.text += part.text;
    if (part.type === 'tool-call') got.calls.push(part);
    if (part.type === 'error') got.error = part.error;
  }
  return got;
}

const quiet = { onError() {} }; // the tests read the error from the stream

for (const [provider, modelOf] of Object.entries(providers)) {
  for (const place of places) {
    describe(`${provider}: ${place.name}`, () => {
      const asking = (scenario, more) => ({ model: modelOf(place, scenario), prompt, providerOptions, ...more });

      test('text', async () => {
        const got = await generateText(asking('text'));
        assert.equal(got.text, endings.text);
        assert.equal(got.finishReason, 'stop');
        assert.ok(got.usage.totalTokens > 0);
      });

      test('text, streamed', async () => {
        assert.deepEqual(await whole(streamText(asking('text'))), { text: endings.text, calls: [], error: undefined });
      });

      test('a tool call', async () => {
        for (const scenario of ['call', 'bytes']) {
          const got = await generateText(asking(scenario, { tools }));
          assert.equal(got.finishReason, 'tool-calls');
          assert.deepEqual(got.toolCalls.map((c) => c.toolName), ['math_evaluate']);
        }
      });

      test('a tool call, streamed', async () => {
        for (const scenario of ['call', 'bytes']) {
          const got = await whole(streamText(asking(scenario, { tools })));
          assert.equal(got.error, undefined);
          assert.deepEqual(got.calls.map((c) => c.toolName), ['math_evaluate']);
        }
      });

      test('a loop', async () => {
        for (const [scenario, ending] of Object.entries({ agent: endings.agent, thinking: thought, parallel: 'The value is 5.' })) {
          const got = await generateText(asking(scenario, { tools: running, stopWhen: stepCountIs(5) }));
          assert.equal(got.text, ending);
        }
      });

      test('a loop, streamed', async () => {
        const got = await whole(streamText(asking('agent', { tools: running, stopWhen: stepCountIs(5) })));
        assert.equal(got.error, undefined);
        assert.equal(got.text, endings.agent);
        assert.equal(got.calls.length, 2);
      });

      // The provider of Messages asks for it by a tool where it does not know that the model has formats.
      test('an answer in a format', { skip: provider === '@ai-sdk/anthropic' && 'it does not know the model' }, async () => {
        assert.deepEqual((await generateObject(asking('structured', { schema: jsonSchema(structure) }))).object, structured);
      });

      if (!place.judges) return;

      test('a call that is repaired is seen repaired only', async () => {
        for (const scenario of ['near-name', 'repair']) {
          const got = await generateText(asking(scenario, { tools }));
          assert.equal(got.toolCalls.length, 1);
          assert.ok(functions[got.toolCalls[0].toolName]);
          assert.notEqual(got.toolCalls[0].input.num_results, '1');
        }
      });

      test('a refusal is an error of the client', async () => {
        const fetch = counting();
        await assert.rejects(generateText({ ...asking('stubborn', { tools }), model: modelOf(place, 'stubborn', { fetch }) }), (error) => {
          assert.ok(APICallError.isInstance(error));
          assert.equal(error.statusCode, 422);
          assert.match(error.responseBody, /"unexpected_argument"/);
          assert.match(error.message, tooMany);
          return true;
        });
        assert.equal(fetch.requests, 1);
      });

      test('a refusal of a stream', async () => {
        const got = await whole(streamText(asking('stubborn', { tools, ...quiet })));
        assert.deepEqual(got.calls, []);
        assert.match(JSON.stringify(got.error?.message ?? got.error), /round.* is not part of/);
      });
    });
  }
}
