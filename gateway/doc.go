// Package gateway is the kernel: the one door through which every completion
// goes, whatever face it came by. It holds the pipeline as one list of checks,
// judges completions by it, and turns what the leaves say into refusals.
//
// A check can say no, and nothing else. What fails, panics or is missing
// refuses. The arguments that a check saw are the bytes that are executed.
//
// Judging is apart from acting. A decision of ModeCall is executed here
// (Execute), one of ModeEnforce is handed to the application (HandOver); both are
// written down before. A conversation that is judged more than once is let in
// once (Admit), and checked anew each time.
//
// What is executed here is kept in the store, from before its tool is called. So
// each such call has one outcome, whoever ends it: Execute, Answer for a tool that
// answers later, Tend for one that does not, and for what a process has left.
// And its result enters its thread once.
package gateway
