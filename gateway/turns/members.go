package turns

import (
	"bytes"
	"slices"
	"strings"

	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/upstream"
)

// maxNamedMembers is how many members a refusal names.
const maxNamedMembers = 8

// withoutEmpty leaves out the members that are null or an empty list and not of the wire: they ask for nothing, and are not
// sent on. An empty object may ask for something: `web_search_options` does.
func (s *Spec) withoutEmpty(members rawjson.Object) rawjson.Object {
	return slices.DeleteFunc(members, func(m rawjson.Member) bool {
		v := m.Value
		empty := v[0] == 'n' || v[0] == '[' && len(bytes.TrimSpace(v[1:len(v)-1])) == 0
		return empty && !s.takes(m.Name)
	})
}

// takes reports whether a member of a request is read, or sent on.
func (s *Spec) takes(name string) bool {
	return slices.Contains(s.Own, name) ||
		slices.ContainsFunc(s.Forwarded, func(group []string) bool { return slices.Contains(group, name) })
}

// checkMembers refuses a request with members that are not to be sent on.
func (r *Run) checkMembers(s *Spec, members rawjson.Object) error {
	var refused []string
	for _, m := range members {
		if slices.Contains(r.Route.Rules.RequestMembers, m.Name) {
			if !s.takes(m.Name) {
				r.Admission.BringsResult("", nil) // what it has the provider read for the model is not seen
			}
			continue
		}
		if by, ok := s.Switches[m.Name]; ok {
			if !by.Allowed(&r.Route.Rules, m.Value) {
				return Bad(m.Name, "%q is not allowed here: %s. Leave it out; or the operator allows it, with %s at the upstream %s.",
					m.Name, by.Reason, by.Key, r.Route.Upstream)
			}
			continue
		}
		if s.takes(m.Name) {
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
