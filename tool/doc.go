// Package tool is the vocabulary of a tool call: what the gateway hands to the engine,
// what a tool returns, and how tools are described. Its types hold data and have no
// behaviour, so that packages which do not import each other share them.
//
// A Call has passed every check. Its Arguments are the bytes that were validated, and
// must be sent unchanged. Text in a Result, a Progress, a Log, a Question, a Challenge
// or a Definition is the tool's: it is untrusted, and may be meant to steer a model.
package tool
