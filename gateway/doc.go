// Package gateway is the kernel: the one door through which every completion
// goes, whatever face it came by. It holds the pipeline as one list of checks,
// judges completions by it, and turns what the leaves say into refusals.
//
// A check can say no, and nothing else. What fails, panics or is missing
// refuses. The arguments that a check saw are the bytes that are executed.
package gateway
