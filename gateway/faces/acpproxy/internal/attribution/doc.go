// Package attribution finds the tool calls of an agent that ran without having been judged: it
// attributes the requests that were judged to the calls that the agent reports.
package attribution
