// Package policytest reads tests of a policy, and runs them by the kernel's own checks: nothing
// is executed, recorded or taken from a limit.
//
// A file of tests is strict YAML with the line "# end" as its last, as every file of a
// configuration:
//
//	tests:
//	  - name: interns touch no money        # once in a file
//	    agent: Intern                       # or agents: [..]
//	    projects: [acme/alpha, acme/beta]   # or project
//	    tools: [payments.refund]            # or tool
//	    arguments: {payment_id: pay_1}      # absent: whatever they are
//	    expect: deny
//	    row: "p, Intern, *, payments.*, , deny"   # optional: a row that decides
//
// A test is one case for each agent, project and tool, and holds if every case comes out as
// expected. A test that could never fail, or is never run, is a fault of its file: one without an
// expectation or a case, of an agent, project or tool that is not there, or with an unknown code.
package policytest
