package native

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/refusal"
)

// maxWait bounds how long a request may ask to wait, in seconds.
const maxWait = 300

// preferredWait reads how long a request would wait for an approval: Prefer: wait=N, in whole
// seconds (RFC 7240, section 4.3). Other preferences are not known here, and ignored, as the
// RFC wants it; a wait that cannot be read is refused, since the caller relies on it.
func preferredWait(h http.Header) (time.Duration, *refusal.Error) {
	for _, value := range h["Prefer"] {
		for part := range strings.SplitSeq(value, ",") {
			preference, _, _ := strings.Cut(part, ";")
			name, text, _ := strings.Cut(preference, "=")
			if !strings.EqualFold(strings.TrimSpace(name), "wait") {
				continue
			}
			text = strings.Trim(strings.TrimSpace(text), `"`)
			seconds, err := strconv.Atoi(text)
			if err != nil || seconds < 0 || seconds > maxWait || text[0] == '+' {
				return 0, bad("The header Prefer must say wait=N, with whole seconds from 0 to %d.", maxWait)
			}
			return time.Duration(seconds) * time.Second, nil // the first one holds
		}
	}
	return 0, nil
}

// waitAt waits for an approval, in the slot of a request.
func waitAt(wait time.Duration, at server.Slot) calls.Wait {
	w := calls.Wait{For: wait}
	if wait > 0 {
		w.Park = at.Park
	}
	return w
}
