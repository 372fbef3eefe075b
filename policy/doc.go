// Package policy decides whether an agent may make a call, and where: permission (which
// agent may call which tool in which project, and with which arguments),
// workspaces and projects, and the boundaries that arguments must stay within.
// It refuses every call that it cannot decide: an error, a panic or a missing list is
// never permission.
//
// # The policy file
//
//	file    = *( line EOL ) "# end" [ EOL ]
//	EOL     = LF / CR LF
//	line    = "" / "#" comment / row
//	row     = field *( "," field )                 ; p rows have 6, g rows 4
//	field   = *SP ( plain / quoted ) *SP
//	plain   = *( any character but "," and DQUOTE ) ; outer spaces dropped
//	quoted  = DQUOTE *( any but DQUOTE / 2DQUOTE ) DQUOTE
//	p row   = p, subject, domain, tool, when, effect
//	g row   = g, agent or role, role, domain
//	domain  = "*" / workspace "/*" / workspace "/" project
//	tool    = "*" / prefix ".*" / name
//	effect  = "allow" / "deny" / "ask:" rule
//	rule    = 1*64( ALPHA / DIGIT / "_" / "-" )
//	role    = "role:" NAME
//
// The file is UTF-8 without a byte order mark, and holds no other
// control character; rows hold no invisible character and a line is
// at most 64 KiB. Nothing, not even an empty line, follows "# end": a file
// without it was cut off and is refused.
//
// "*" alone matches everything. As the last part it matches everything below
// that part, not the part itself. A star anywhere else is an error, and a star
// in a request matches nothing. Roles may be members of roles; a cycle, or a
// chain in which an agent would need more than ten steps, is an error.
//
// A row that asks permits as an allow row does, but only calls that people have
// approved by its rule. Deny rows override rows that ask, and those override allow
// rows, whatever their order; where several ask, the rules of all must be satisfied.
// A call that no row allows is denied. A casbin.Enforcer decides what is permitted, by Model, over
// the few rows that an index preselects; to it a row that asks is an allow row.
//
// Conditions are the affair of policy/condition, boundaries of policy/boundary. A
// condition that fails (it reads an absent member, meets a wrong type, asks what was done before and is
// not known, costs too much, is interrupted) makes a deny row deny, an allow row not allow, and a row that
// asks ask and not permit: some other row must.
// Conditions are evaluated in the order of their lines.
package policy
