// The Vercel AI SDK, ai, with @ai-sdk/openai-compatible.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { APICallError, generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai';

import { counting, endings, functions, orchestrated, places } from './places.mjs';

const prompt = 'Please.';

// Tools that the SDK runs, and tools whose calls it hands over.
const described = ([name, f]) => [name, tool({ description: f.description, inputSchema: jsonSchema(f.parameters) })];
const runnable = ([name, f]) => [name, tool({ description: f.description, inputSchema: jsonSchema(f.parameters), execute: async (given) => f.run(given) })];
const tools = Object.fromEntries(Object.entries(functions).map(described));
const running = Object.fromEntries(Object.entries(functions).map(runnable));

function modelOf(place, scenario, more) {
  return createOpenAICompatible({ name: 'callgate', baseURL: place.baseURL, apiKey: 'unused', ...more })(place.model(scenario));
}

// A stream to its end: its text, its calls and its error.
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

for (const place of places) {
  describe(`ai: ${place.name}`, () => {
    test('text', async () => {
      const got = await generateText({ model: modelOf(place, 'text'), prompt });
      assert.equal(got.text, endings.text);
      assert.equal(got.finishReason, 'stop');
      assert.ok(got.usage.totalTokens > 0);
    });

    test('text, streamed', async () => {
      const got = await whole(streamText({ model: modelOf(place, 'text'), prompt }));
      assert.deepEqual(got, { text: endings.text, calls: [], error: undefined });
    });

    test('a tool call', async () => {
      for (const scenario of ['call', 'bytes']) {
        const got = await generateText({ model: modelOf(place, scenario), prompt, tools });
        assert.equal(got.finishReason, 'tool-calls');
        assert.deepEqual(got.toolCalls.map((c) => c.toolName), ['math_evaluate']);
      }
    });

    test('a tool call, streamed', async () => {
      for (const scenario of ['call', 'bytes']) {
        const got = await whole(streamText({ model: modelOf(place, scenario), prompt, tools }));
        assert.equal(got.error, undefined);
        assert.deepEqual(got.calls.map((c) => c.toolName), ['math_evaluate']);
      }
    });

    test('a loop', async () => {
      const got = await generateText({ model: modelOf(place, 'agent'), prompt, tools: running, stopWhen: stepCountIs(5) });
      assert.equal(got.text, endings.agent);
      assert.equal(got.steps.length, 3);
    });

    test('a loop, streamed', async () => {
      const got = await whole(streamText({ model: modelOf(place, 'agent'), prompt, tools: running, stopWhen: stepCountIs(5) }));
      assert.equal(got.error, undefined);
      assert.equal(got.text, endings.agent);
      assert.equal(got.calls.length, 2);
    });

    if (!place.judges) return;

    test('a refusal is an error of the client', async () => {
      const fetch = counting();
      await assert.rejects(generateText({ model: modelOf(place, 'stubborn', { fetch }), prompt, tools }), (error) => {
        assert.ok(APICallError.isInstance(error));
        assert.equal(error.statusCode, 422);
        assert.equal(error.data.error.code, 'unexpected_argument');
        assert.match(error.message, /"round" is not part of/);
        return true;
      });
      assert.equal(fetch.requests, 1);
    });

    test('a refusal of a stream', async () => {
      const got = await whole(streamText({ model: modelOf(place, 'stubborn'), prompt, tools, ...quiet }));
      assert.deepEqual(got.calls, []);
      assert.match(String(got.error?.message ?? got.error), /"round" is not part of/);
    });
  });
}

for (const place of orchestrated) {
  describe(`ai: ${place.name}`, () => {
    const agent = /^The best page is ".*tides.*", at https:\/\/example\.com\/science\/tides\./;

    test('a whole task in one request', async () => {
      const got = await generateText({ model: modelOf(place, 'agent'), prompt });
      assert.match(got.text, agent);
      assert.equal(got.steps.length, 1);
    });

    test('a whole task, streamed', async () => {
      const got = await whole(streamText({ model: modelOf(place, 'agent'), prompt }));
      assert.equal(got.error, undefined);
      assert.match(got.text, agent);
    });

    test('an endless loop ends', async () => {
      await assert.rejects(generateText({ model: modelOf(place, 'loop'), prompt }), (error) => {
        assert.ok(APICallError.isInstance(error));
        assert.equal(error.data.error.code, 'bound_reached');
        return true;
      });
    });
  });
}
