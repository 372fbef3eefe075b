package responses

import "github.com/callgate/callgate/internal/ring"

// maxLedger bounds the responses that are remembered, over all callers.
const maxLedger = 1 << 15

// ledger remembers which caller began a stored response, at which upstream, so that nobody
// else continues it (RS-72): by the id that its caller knows, the id of the run's last turn, from which
// the provider continues. It is of this process: what was created before it began, or at
// another replica, is not known.
type ledger = ring.Ring[owner, string]

type owner struct{ principal, upstream, id string }

func newLedger() *ledger { return ring.New[owner, string](maxLedger) }
