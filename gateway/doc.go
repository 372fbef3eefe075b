// Package gateway is the kernel: every completion passes through it, from every face. It
// holds the pipeline as two lists of checks, runs them on completions, and turns the errors
// of the packages below into refusals.
//
// A check can only refuse. A check that fails, panics or is missing refuses. The arguments
// that a check saw are the bytes that are executed.
//
// Judging is separate from acting. A decision is recorded, and gives its calls once, as
// values of the type Approved: in ModeCall for execution, in ModeEnforce for the
// application. Only this package makes an Approved, and a Runner, which holds the engine,
// runs nothing else: code that executes a call without a judgement does not compile.
// Package gateway/calls, which this package does not import, handles approved calls.
//
// A conversation that is judged more than once is admitted once (Admit), and checked again
// each time.
package gateway
