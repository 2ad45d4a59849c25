check_PROGRAMS += tests/draw/test-picture tests/draw/test-show

tests_draw_test_picture_SOURCES = tests/draw/test-picture.c
tests_draw_test_show_SOURCES = tests/draw/test-show.c
