package server

// Pool selects the bound that the requests of a route share. One caller has at most half of
// each.
type Pool int

const (
	// Calls are judged and executed. At most MaxInFlight of them are answered at
	// the same time.
	Calls Pool = iota
	// Reserved is for requests that complete or look up calls. It has a fifth of
	// MaxInFlight, at least one, for itself, so that calls that saturate the gateway can
	// still be completed. If that is taken, it uses free slots of Calls.
	Reserved
	// Streams wait for a call to end. They last long and do little: their pool has as many
	// slots as that of calls. Their context ends when the server drains.
	Streams
	// Free is for requests that are answered at once, to any client. It has no bound and
	// takes no slots of the others.
	Free
)

// reservedShare is the part of a bound that is reserved.
const reservedShare = 5

// reservedOf is a fifth of a bound, at least one.
func reservedOf(of int) int { return max(of/reservedShare, 1) }

// pools hold the slots of requests in flight.
type pools struct{ calls, reserved, streams *Quota }

func newPools(most int) pools {
	return pools{calls: NewQuota(int64(most)), reserved: NewQuota(int64(reservedOf(most))), streams: NewQuota(int64(most))}
}

// quotas returns the quotas that a pool may use, in the order of preference.
func (p pools) quotas(pool Pool) []*Quota {
	switch pool {
	case Reserved:
		return []*Quota{p.reserved, p.calls}
	case Streams:
		return []*Quota{p.streams}
	}
	return []*Quota{p.calls}
}

func (p pools) inFlight() int { return int(p.calls.used() + p.reserved.used() + p.streams.used()) }

// acquire takes a slot of a pool and returns its quota, or nil if all are taken.
func (p pools) acquire(pool Pool, client string) *Quota {
	for _, slots := range p.quotas(pool) {
		if slots.take(client, 1, 0) {
			return slots
		}
	}
	return nil
}
