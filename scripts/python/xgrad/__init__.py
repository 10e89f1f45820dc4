"""The programs xgrad and xgrad-learn, and the C++ library xgrad: python -m xgrad --cmakedir says where it is."""
