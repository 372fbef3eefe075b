// Package oxp is a client of servers of the Open eXecution Protocol 1.0: it lists their
// tools and calls them, always in one exact version, and asks how an authorization
// stands. A response is read strictly: one that is not exactly of the protocol is
// invalid_result, and a list with one invalid definition is rejected whole.
package oxp
