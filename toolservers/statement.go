package toolservers

import (
	"github.com/callgate/callgate/configs"
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

func statementOf(offers []configs.DiscoveredTool) statement {
	says := make(statement, len(offers))
	for _, o := range offers {
		of := versionKey{o.Name, o.Version}
		digest, err := o.Digest()
		if _, twice := says[of]; twice || err != nil || o.Unusable != "" {
			digest = ""
		}
		says[of] = digest
	}
	return says
}

// State compares the accepted definition with the server's.
func (s statement) state(p configs.Pin) string {
	digest, has := s[versionKey{p.Name, p.Version}]
	switch {
	case !has:
		return StateGone
	case digest == "" || digest != p.Digest:
		return StateChanged
	}
	return StateAccepted
}

// engineServer says to the engine where a server is.
func engineServer(s configs.ToolServer) tool.Server {
	return tool.Server{
		Name: s.Name, Type: s.Type, URL: s.URL, Command: s.Command, Folder: s.Dir, Env: s.Env,
		Credential: s.Credential.String(), Addresses: s.Addresses, Timeout: s.Timeout,
	}
}

func DiscoveredTools(found []tool.Definition) []configs.DiscoveredTool {
	offers := make([]configs.DiscoveredTool, len(found))
	for i, d := range found {
		offers[i] = configs.DiscoveredTool{
			Name: d.Name, Version: d.Version, Endpoint: d.Endpoint, Description: d.Description,
			InputSchema: d.InputSchema, OutputSchema: d.OutputSchema, Unusable: d.Unusable,
		}
	}
	return offers
}
