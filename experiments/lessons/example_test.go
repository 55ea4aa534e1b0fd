package lessons_test

import (
	"context"
	"fmt"

	"clifftop/experiments/lessons"
)

// Little's law, held and checked.
func ExampleLesson_Run() {
	l, err := lessons.Find("9")
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := l.Run(context.Background(), lessons.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Title)
	fmt.Println(r.Pictures[0].Message())
	for _, c := range r.Claims {
		if !c.Holds {
			fmt.Println("fails:", c.String())
		}
	}
	// Output:
	// Little's law, and how many requests run at once
	// 4 requests per minute, 30 s each: 2.0 at once on average, and capacity for 6 is enough 99 % of the time
}
