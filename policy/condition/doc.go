// Package condition compiles and evaluates the conditions of policy rows.
//
// # Contract
//
// A Compiler compiles each expression once and checks it against the input schema of
// the tool that its row names; an Issue says where and why an expression is refused.
// A Condition is safe for concurrent use. Evaluate answers true, false or an error,
// never a panic; its errors hold no value of the call. The cost of one evaluation is
// bounded, and the worst case is foreseen when the expression is compiled.
//
// # Language
//
// "when" is a CEL expression over args, agent, workspace, project, tool, thread and
// caller that yields a bool; empty means always. A number whose value is an integer
// of 64 bits is an int, however it is written (5, 5.0, 5e0, -0.0); every other
// number of at most 15 significant digits that a double holds is a double; a
// condition that reads any other number fails. Zeros at either end are not
// significant. Ints and doubles compare with each other, as doubles: write an int
// where more than 2^53 is compared. Arithmetic that mixes them fails, as in CEL:
// write double(args.amount) * 1.19.
//
// A condition that fails (it reads an absent member, meets a wrong type, costs
// too much, is interrupted) makes a deny row deny and an allow row not allow,
// even where CEL's logical operators would have hidden a number that cannot be
// read. Conditions are evaluated in the order of their lines.
//
// thread.labels is a list of texts. thread.calls('TOOL'), thread.results('TOOL') and thread.sum('TOOL', 'MEMBER')
// are terms: numbers that history keeps of each thread. A map {'MEMBER': value} behind them, then a window such as '24h',
// narrow what counts; caller.calls and caller.sum, of all threads of a caller, have a window. All but the values of
// the map is literal, so the terms are known when the file is loaded, and is checked against the schemas of the tools
// that are counted. Terms stand outside of loops. A term, or labels, that cannot be known make the condition fail as a number
// does that cannot be read. A sum is an int where it is whole, else a double.
//
// Where a row names one known tool, its condition is also checked against that
// tool's input schema when the file is loaded: members that the closed schema
// cannot have, comparisons between types that never meet, and conditions whose
// worst case costs too much are errors.
package condition
