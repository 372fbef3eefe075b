package toolservers

import (
	"github.com/callgate/callgate/configs/toolservers/lockfile"
	"github.com/callgate/callgate/tool"
)

// The states of an accepted tool.
const (
	StateAccepted   = "accepted"
	StateGone       = "gone"
	StateChanged    = "changed"
	StateUnreadable = "unreadable"
)

// statement is the content of a server's list: the digest of each version of each tool. The
// digest of a tool that Callgate cannot call is empty.
type statement map[versionKey]string

type versionKey struct{ Name, Version string }

func statementOf(offers []tool.Definition) statement {
	definitions := make(statement, len(offers))
	for _, o := range offers {
		of := versionKey{o.Name, o.Version}
		digest, err := lockfile.Digest(o)
		if _, twice := definitions[of]; twice || err != nil || o.Unusable != "" {
			digest = ""
		}
		definitions[of] = digest
	}
	return definitions
}

// State compares the accepted definition with the server's.
func (s statement) state(p lockfile.Pin) string {
	digest, has := s[versionKey{p.Name, p.Version}]
	switch {
	case !has:
		return StateGone
	case digest == "" || digest != p.Digest:
		return StateChanged
	}
	return StateAccepted
}
