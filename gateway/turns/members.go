package turns

import (
	"slices"
	"strings"

	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/upstream"
)

// maxNamedMembers is how many members a refusal names.
const maxNamedMembers = 8

// checkMembers refuses a request with members that are not to be sent on.
func (r *Run) checkMembers(s *Spec, members rawjson.Object) error {
	var refused []string
	for _, m := range members {
		if slices.Contains(s.Own, m.Name) || slices.ContainsFunc(s.Forwarded, func(group []string) bool { return slices.Contains(group, m.Name) }) ||
			slices.Contains(r.Route.Rules.RequestMembers, m.Name) {
			continue
		}
		if refused = append(refused, m.Name); len(refused) == maxNamedMembers {
			break
		}
	}
	if len(refused) == 0 {
		return nil
	}
	quoted := make([]string, len(refused))
	for i, name := range refused {
		quoted[i] = parser.Quote(name)
	}
	list := strings.Join(quoted, ", ")
	param := refused[0]
	if len(param) > upstream.MaxMemberName {
		param = ""
	}
	return Bad(param, "The request has members that are not known to be harmless, and are not sent on: %s. Through such a member a provider could call tools itself, and nobody would judge the calls. "+
		"Leave it out; or the operator allows it, with request_members: [%s] at the upstream %s.", list, list, r.Route.Upstream)
}
