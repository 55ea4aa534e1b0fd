package scenario

import (
	"reflect"
	"strings"
)

// Choices are the words that a key takes, such as those of deployment.dtype; nil for a key that takes anything else.
func Choices(key string) []string {
	t := reflect.TypeFor[Scenario]()
	var words []string
	for _, name := range strings.Split(key, ".") {
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			return nil
		}
		found := false
		for i := range t.NumField() {
			f := t.Field(i)
			if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
				t, words, found = f.Type, strings.Fields(f.Tag.Get("one")), true
				break
			}
		}
		if !found {
			return nil
		}
	}
	return words
}
