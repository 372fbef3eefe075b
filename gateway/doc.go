// Package gateway is the kernel: the one door through which every completion
// goes, whatever face it came by. It holds the pipeline as two lists of checks,
// judges completions by it, and turns what the leaves say into refusals.
//
// A check can say no, and nothing else. What fails, panics or is missing
// refuses. The arguments that a check saw are the bytes that are executed.
//
// Judging is apart from acting. A decision is written down, and gives its calls once, as
// values of the type Approved: for ModeCall to be executed, for ModeEnforce to be handed to
// the application. Only this package makes an Approved, and a Runner, which holds the
// engine, runs nothing else: that a call is executed which was not judged does not compile.
// What becomes of an approved call is the matter of gateway/calls, which this package does
// not know.
//
// A conversation that is judged more than once is let in once (Admit), and checked anew
// each time.
package gateway
