// Package elicitation validates the questions of a tool to its caller, and the answers.
//
// # Contract
//
// A question is read before a caller sees it (Read). A question that is not exactly of its
// kind is refused, with an error that holds no text of the tool. The caller gets an
// encoding of the members that were read, so nothing else passes. Texts for people and
// models are escaped so that nothing in them is hidden; names and values that an answer
// repeats must not need escaping.
//
// An answer is validated against its question (Question.Validate). The tool gets an
// encoding of what was read, with every number as it was written. The members _meta,
// which the protocol allows anywhere, must be objects, and are not passed on.
//
// Reading and validating take time and memory that are linear in their input, which is
// bounded.
//
// # Kinds
//
// The forms are those of MCP 2026-07-28.
//
//	form      elicitation/create       values for a flat list of fields
//	url       elicitation/create       a visit to a URL
//	sampling  sampling/createMessage   a message of the caller's model, without tools
//	roots     roots/list               the folders that the caller works in
package elicitation
