check_PROGRAMS += tests/draw/test-picture

tests_draw_test_picture_SOURCES = tests/draw/test-picture.c
