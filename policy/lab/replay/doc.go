// Package replay judges the decisions of an audit log again, by another configuration.
//
// # Contract
//
// A decision is judged again from the tool's name to the boundaries of the project: the checks
// schema, permission, workspace and project. Nothing is executed, counted against limits or
// asked of people, and nothing is written. The caller and the rate of calls are not
// judged again. A refusal for a limit, or because the log or the engine failed, counts as a call that the
// configuration allowed.
//
// A log that keeps no arguments still decides all that does not depend on them; the rest
// is undecided, with the reason, and never guessed. A Replay keeps one group for each kind of
// change, at most MaxGroups, so that memory does not grow with the log.
package replay
