// Package compare says how two policies differ by their rows: which agents may use which tools in
// which projects under one and not under the other.
//
// It is exact on everything but conditions. A policy file tells only so many requests
// apart, so a world of all names that either side knows, with one stranger for everything
// else that a pattern can match, stands for all requests. In it only the calls are looked at
// that a row or grant can reach which one policy has and the other has not.
//
// Conditions are compared as bounds on members of the arguments (condition.Conjunction): a policy
// that permits by fewer or tighter conditions, denies by more and asks by more is never wider. Where
// that decides nothing they cannot be compared, and the Result says so and claims nothing.
//
// Time is linear in the calls that a changed row can reach; memory is bounded by the rows, the
// names, and the number of groups that are kept.
package compare
