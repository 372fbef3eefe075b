package starter

import (
	"fmt"
	"strings"
)

// addServers adds the servers file, and a file for each value.
func (p *Plan) addServers(servers []Server) {
	var b strings.Builder
	var values []file
	place := func(s Server, v Variable) string {
		switch {
		case v.Place != "":
			return quoted(v.Place)
		case v.Value == "":
			return `""`
		}
		name := secretsFolder + s.Name + "." + v.Name
		values = append(values, file{name, []byte(v.Value + "\n")})
		return quoted("file:" + name)
	}
	b.WriteString("# Tool servers. Their tools are named SERVER.TOOL, and may be called once they are\n")
	b.WriteString("# accepted (callgate servers accept SERVER) and a row of policy.csv allows them.\n")
	b.WriteString("servers:\n")
	for _, s := range servers {
		fmt.Fprintf(&b, "  - name: %s\n    type: mcp\n", quoted(s.Name))
		if s.URL != "" {
			fmt.Fprintf(&b, "    url: %s\n", quoted(s.URL))
			if own := ownAddresses(s.URL); own != nil {
				fmt.Fprintf(&b, "    addresses: [%s, \"%s\"]\n", own[0], own[1])
			}
		}
		if len(s.Command) > 0 {
			fmt.Fprintf(&b, "    command: %s\n", list(s.Command))
		}
		if s.Token != nil {
			fmt.Fprintf(&b, "    credential: %s\n", place(s, *s.Token))
		}
		if len(s.Env) > 0 {
			b.WriteString("    env:\n")
			for _, v := range s.Env {
				fmt.Fprintf(&b, "      %s: %s\n", quoted(v.Name), place(s, v))
			}
		}
	}
	b.WriteString("# end\n")
	p.add("servers.yaml", b.String())
	if len(values) > 0 {
		p.files = append(p.files, values...)
		p.add(secretsFolder+".gitignore", "*\n") // the last is written first
	}
}

// Secrets counts the files with values that a client's file held.
func (p *Plan) Secrets() int {
	n := 0
	for _, f := range p.files {
		if strings.HasPrefix(f.name, secretsFolder) && !strings.HasSuffix(f.name, "/.gitignore") {
			n++
		}
	}
	return n
}
