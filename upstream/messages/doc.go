// Package messages reads the replies of the Anthropic Messages API: a whole message, and the
// events of a streamed one. It finds every call wherever it can stand, and refuses what two
// readers could understand differently. It knows nothing of requests, connections and
// policies. AM-numbers below are rules of the wire (docs/conformance.md).
//
// # Whole
//
// Read parses one message object: strict JSON, with the members that every message has
// (AM-30). Each content block has a known type, or the reply is refused unless unknown blocks
// are allowed (AM-31). The input of a call is the bytes that stood on the wire.
//
// # Streamed
//
// A Stream takes events one by one (AM-40). The order is one message_start, then block after
// block without gaps in the index, then the reason why the message stopped, then
// message_stop. It is refused when
//
//   - the event has a name that differs from the type in its data;
//   - message_start comes twice (AM-45), or anything but ping after message_stop;
//   - an index is not the next one, a block opens while another is open, a delta or a stop
//     belongs to no open block, or a block comes after the reason (AM-46, AM-47);
//   - a delta does not fit the type of its block (AM-42);
//   - both the start of a block and its deltas carry input (AM-44), or a block has two
//     signatures (AM-49).
//
// A call may stand whole in message_start, in content_block_start or in deltas (AM-44); no
// delta with text means {} (AM-43). A stream is complete once the reason has come and no block is
// open, with message_stop or without (AM-47).
//
// # What may be shown
//
// Until the first tool_use of the client, Add returns events that may be shown. From there on
// it returns pings alone: the rest is in the Reply after the end (AM-52). Indexes of the
// returned events are dense, from 0.
package messages
