// Package budget bounds the tokens and the money that requests to models take, by calendar
// windows.
//
// # Reserve, then settle
//
// Before a request goes to a provider, an upper bound of its cost is reserved in every budget
// that applies, or in none. Afterwards the reservation is settled: its place is taken by what the
// provider says that the request took. So at each moment, for each budget and window,
//
//	settled + reserved <= the budget
//
// holds when a reservation is made, however many gateways reserve at once. Only a provider that
// takes more than was reserved for a request can exceed it, by that difference.
//
// A reservation is settled once. An unknown amount is charged as reserved: a reply without a
// usage, a stream that broke off, a caller that left, a gateway that crashed. A request that has
// certainly not reached its provider gives its reservation back. A reservation is settled in the
// window in which it was made, also after that window has ended.
//
// # Counters
//
// A budget has a counter for each subject that it is counted for (per) and for each window. It
// counts tokens and money, whichever the budget bounds, so that a changed budget keeps what was
// spent: only another name, per or window begins anew.
package budget
