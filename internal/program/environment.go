package program

import "os"

// inherited lists the variables of our environment that a program gets. All
// others are our own.
var inherited = []string{"PATH", "HOME", "LANG"}

// Environment returns the variables of a program: those that it inherits, then its own, which
// take precedence.
func Environment(own []string) []string {
	all := []string{}
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok {
			all = append(all, name+"="+value)
		}
	}
	return append(all, own...)
}
