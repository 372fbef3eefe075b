package responses

import (
	"github.com/callgate/callgate/gateway/turns"
)

// Face answers requests. It is safe for concurrent use.
type Face struct {
	options turns.Options
	ledger  *ledger
}

// New returns the face of a kernel.
func New(options turns.Options) *Face { return &Face{options: options, ledger: newLedger()} }

// maxBodyBytes is how long a request may be, and how much a run may add to it.
const maxBodyBytes = 8 << 20
