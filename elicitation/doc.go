// Package elicitation judges what a tool asks of whoever called it, and what is
// answered.
//
// # Contract
//
// A question is read before anybody sees it (Read). What is not exactly of its kind
// cannot be asked: the error says why, in words of this package alone. What the
// caller is given is encoded anew from what was read, so nothing passes that was not;
// texts for people and models are shown with nothing hidden in them, and names and
// values that an answer repeats must hide nothing.
//
// An answer is judged against its question (Judge). What the tool is given of it is
// encoded anew likewise, with every number as it was written. The members _meta, which
// the protocol allows anywhere, are read as objects and passed on in neither direction.
//
// Reading and judging take time and memory that are linear in their input, which is
// bounded.
//
// # Kinds
//
// The forms are those of MCP 2026-07-28.
//
//	form      elicitation/create   values for a flat list of fields
//	url       elicitation/create   a visit to an address
//	sampling  sampling/createMessage   a message of the caller's model, without tools
//	roots     roots/list   the folders that the caller works in
package elicitation
