// Package policy decides whether an agent may make a call, and where: permission (which
// agent may call which tool in which project, and with which arguments),
// workspaces and projects, and the boundaries that arguments must stay within.
// It refuses every call that it cannot decide: an error, a panic or a missing list is
// never permission.
//
// # The policy file
//
//	file    = *( line LF ) "# end" [ LF ]
//	line    = "" / "#" comment / row
//	row     = field *( "," field )                 ; p rows have 6, g rows 4
//	field   = *SP ( plain / quoted ) *SP
//	plain   = *( any character but "," and DQUOTE ) ; outer spaces dropped
//	quoted  = DQUOTE *( any but DQUOTE / 2DQUOTE ) DQUOTE
//	p row   = p, subject, domain, tool, when, effect
//	g row   = g, agent or role, role, domain
//	domain  = "*" / workspace "/*" / workspace "/" project
//	tool    = "*" / prefix ".*" / name
//	effect  = "allow" / "deny"
//	role    = "role:" NAME
//
// The file is UTF-8 without a byte order mark, ends its lines with LF alone and
// holds no control character; rows hold no invisible character and a line is
// at most 64 KiB. Nothing, not even an empty line, follows "# end": a file
// without it was cut off and is refused.
//
// "*" alone matches everything. As the last part it matches everything below
// that part, not the part itself. A star anywhere else is an error, and a star
// in a request matches nothing. Roles may be members of roles; a cycle, or a
// chain in which an agent would need more than ten steps, is an error.
//
// Deny rows override allow rows, whatever their order, and what no row allows
// is denied. casbin decides, over the few rows that can reach a request.
//
// # Conditions
//
// "when" is a CEL expression over args, agent, workspace, project and tool
// that yields a bool; empty means always. A number whose value is an integer
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
// Where a row names one known tool, its condition is also checked against that
// tool's input schema when the file is loaded: members that the closed schema
// cannot have, comparisons between types that never meet, and conditions whose
// worst case costs too much are errors.
package policy
