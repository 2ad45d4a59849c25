check_PROGRAMS += tests/draw/test-axis tests/draw/test-bars tests/draw/test-chart tests/draw/test-picture tests/draw/test-show tests/draw/test-timeline

tests_draw_test_axis_SOURCES = tests/draw/test-axis.c
tests_draw_test_bars_SOURCES = tests/draw/test-bars.c tests/draw/drawn.c tests/draw/drawn.h
tests_draw_test_chart_SOURCES = tests/draw/test-chart.c
tests_draw_test_picture_SOURCES = tests/draw/test-picture.c
tests_draw_test_show_SOURCES = tests/draw/test-show.c
tests_draw_test_timeline_SOURCES = tests/draw/test-timeline.c tests/draw/drawn.c tests/draw/drawn.h
