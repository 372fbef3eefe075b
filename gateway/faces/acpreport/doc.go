// Package report shows calls to the client of an ACP session: a judged call as a tool call of the
// protocol, its end as an update, and a question for approval as the options of a permission with
// the vote that an answer is. It is pure: it sends nothing and decides nothing.
package report
