// Package gateway is the kernel: the one door through which every completion
// goes, whatever face it came by. It holds the pipeline as two lists of checks,
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
// A call that is executed here is in the store before its tool is called. So each has
// exactly one outcome, given by Execute, by Complete for a tool that answers later, or by
// the Reconciler for a call that expired or whose process died. Its result enters its
// thread once.
package gateway
