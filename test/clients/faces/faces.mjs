// Helpers that the tests of Messages and Responses share. The places, the functions and the
// endings are those of the tests of chat completions.
import assert from 'node:assert/strict';

import { places as every } from './places.mjs';

// Text protocols are of chat completions alone.
export const places = every.filter((place) => place.protocol !== 'text');

// The endings of scenarios that are only in these tests.
export const thought = 'The value is 2.5 — exactly.';
export const structured = { rises: 2, body: 'the sea' };
export const structure = {
  type: 'object',
  properties: { rises: { type: 'integer' }, body: { type: 'string' } },
  required: ['rises', 'body'],
  additionalProperties: false,
};

// The text of a refusal of the scenario stubborn.
export const tooMany = /round\\*" is not part of/;

// The body of the scenario rejected, byte for byte as the model sends it.
export const rejected = '{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0: Invalid `signature` in `thinking` block"},"request_id":"req_rejected"}';

// A fetch that keeps the text of the last answer that was an error.
export function keeping() {
  const keep = async (...request) => {
    const response = await fetch(...request);
    keep.requests++;
    if (!response.ok) keep.body = await response.clone().text();
    return response;
  };
  keep.requests = 0;
  return keep;
}

// Every piece of a stream, and the error that ended it.
export async function collected(stream) {
  const got = { pieces: [], error: undefined };
  try {
    for await (const piece of await stream) got.pieces.push(piece);
  } catch (error) {
    got.error = error;
  }
  return got;
}

// A rejection, which the caller looks at.
export async function rejection(promise) {
  let error;
  await assert.rejects(promise, (e) => ((error = e), true));
  return error;
}
